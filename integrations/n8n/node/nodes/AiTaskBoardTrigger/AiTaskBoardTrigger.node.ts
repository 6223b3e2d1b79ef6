import type {
	IDataObject,
	IHookFunctions,
	INodeType,
	INodeTypeDescription,
	IWebhookFunctions,
	IWebhookResponseData,
} from 'n8n-workflow';
import { NodeConnectionTypes } from 'n8n-workflow';
import { call, parts } from '../shared/board';
import { comesFromTheBoard, secretFor } from '../shared/signature';

export class AiTaskBoardTrigger implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'AI Task Board Trigger',
		name: 'aiTaskBoardTrigger',
		icon: { light: 'file:../../icons/board.svg', dark: 'file:../../icons/board.dark.svg' },
		group: ['trigger'],
		version: [1],
		subtitle: '={{ $parameter["events"].join(", ") }}',
		description: 'Starts the workflow when something happens on the AI Task Board',
		defaults: { name: 'AI Task Board Trigger' },
		inputs: [],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'aiTaskBoardApi', required: true }],
		webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'board' }],
		properties: [
			{
				displayName: 'Events',
				name: 'events',
				type: 'multiOptions',
				required: true,
				default: ['task.needs_review'],
				description: 'What starts the workflow',
				options: [
					{ name: 'Queue Alert', value: 'queue.alert' },
					{ name: 'Report Ready', value: 'report.ready' },
					{ name: 'Review Decided', value: 'review.decided' },
					{ name: 'Review Overdue', value: 'review.overdue' },
					{ name: 'Task Cancelled', value: 'task.cancelled' },
					{ name: 'Task Created', value: 'task.created' },
					{ name: 'Task Done', value: 'task.done' },
					{ name: 'Task Failed', value: 'task.failed' },
					{ name: 'Task Needs Review', value: 'task.needs_review' },
					{ name: 'Task Started', value: 'task.started' },
				],
			},
			{
				displayName: 'Task Types',
				name: 'types',
				type: 'string',
				default: '',
				placeholder: 'lead.qualify, invoice.send',
				description:
					'Only events of tasks of these types, separated by commas. Empty: of all types.',
			},
		],
	};

	webhookMethods = {
		default: {
			async checkExists(this: IHookFunctions): Promise<boolean> {
				const there = await subscription(this);
				return there !== undefined && there.status === 'active' && same(there, wish(this));
			},

			async create(this: IHookFunctions): Promise<boolean> {
				const { apiKey } = await this.getCredentials('aiTaskBoardApi');
				const body = wish(this);
				body.secret = secretFor(String(apiKey), String(body.url));
				if (!(body.types as string[]).length) delete body.types;
				// One address with the same events is one subscription, so to create it twice does no harm.
				await call(this, { method: 'POST', path: '/subscriptions', body });
				return true;
			},

			async delete(this: IHookFunctions): Promise<boolean> {
				const there = await subscription(this);
				if (there) await call(this, { method: 'DELETE', path: `/subscriptions/${there.id}` });
				return true;
			},
		},
	};

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		const headers = this.getHeaderData() as IDataObject;
		const { rawBody } = this.getRequestObject();
		const { apiKey } = await this.getCredentials('aiTaskBoardApi');
		const secret = secretFor(String(apiKey), String(this.getNodeWebhookUrl('default')));
		if (!rawBody || !comesFromTheBoard(headers, rawBody, secret)) {
			const message = 'The signature does not fit: this call does not come from the board.';
			this.getResponseObject().status(401).json({ message });
			return { noWebhookResponse: true };
		}
		// The same id in every try of one event: with it a workflow can tell what came twice.
		const event = { ...this.getBodyData(), webhook_id: headers['webhook-id'] };
		return { workflowData: [this.helpers.returnJsonArray([event])] };
	}
}

/** What this node subscribes to. */
function wish(hook: IHookFunctions): IDataObject {
	return {
		url: hook.getNodeWebhookUrl('default'),
		events: hook.getNodeParameter('events') as string[],
		types: parts(hook.getNodeParameter('types')),
	};
}

/** The subscription of this node's address, as the board has it: nothing is kept in n8n that could be lost. */
async function subscription(hook: IHookFunctions): Promise<IDataObject | undefined> {
	const url = hook.getNodeWebhookUrl('default');
	const { data } = await call(hook, { method: 'GET', path: '/subscriptions' });
	return (data as IDataObject[]).find((it) => it.url === url);
}

function same(there: IDataObject, wanted: IDataObject): boolean {
	const sorted = (it: unknown) => JSON.stringify([...((it as string[]) ?? [])].sort());
	return (
		sorted(there.events) === sorted(wanted.events) && sorted(there.types) === sorted(wanted.types)
	);
}
