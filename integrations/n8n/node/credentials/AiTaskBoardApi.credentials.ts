import type {
	IAuthenticateGeneric,
	ICredentialTestRequest,
	ICredentialType,
	Icon,
	INodeProperties,
} from 'n8n-workflow';

export class AiTaskBoardApi implements ICredentialType {
	name = 'aiTaskBoardApi';

	displayName = 'AI Task Board API';

	icon: Icon = { light: 'file:../icons/board.svg', dark: 'file:../icons/board.dark.svg' };

	documentationUrl = 'https://example.org/ai-task-board/docs/n8n-node.md';

	properties: INodeProperties[] = [
		{
			displayName: 'Board URL',
			name: 'url',
			type: 'string',
			required: true,
			default: 'http://127.0.0.1:8000',
			description: 'Address of the board as n8n reaches it, without /api/v1',
		},
		{
			displayName: 'API Key',
			name: 'apiKey',
			type: 'string',
			typeOptions: { password: true },
			required: true,
			default: '',
			description:
				'Made by: board keys create n8n --scopes submit,read,review,work. Give it only the scopes that your workflows need.',
		},
	];

	authenticate: IAuthenticateGeneric = {
		type: 'generic',
		properties: { headers: { 'X-API-Key': '={{$credentials.apiKey}}' } },
	};

	test: ICredentialTestRequest = {
		request: {
			baseURL: '={{$credentials.url.replace(/\\/+$/, "")}}',
			url: '/api/v1/me',
		},
	};
}
