import type {
	IExecuteFunctions,
	ILoadOptionsFunctions,
	INodeExecutionData,
	INodePropertyOptions,
	INodeType,
	INodeTypeDescription,
	IWebhookFunctions,
	IWebhookResponseData,
} from 'n8n-workflow';
import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import { all } from '../shared/board';
import { claimFields } from './fields/claim';
import { reportFields } from './fields/report';
import { reviewFields } from './fields/review';
import { taskFields } from './fields/task';
import { items, OPERATIONS } from './requests';
import { answered, sendAndWait } from './waiting';

// Its webhook continues one execution, and is registered nowhere.
// eslint-disable-next-line @n8n/community-nodes/webhook-lifecycle-complete
export class AiTaskBoard implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'AI Task Board',
		name: 'aiTaskBoard',
		icon: { light: 'file:../../icons/board.svg', dark: 'file:../../icons/board.dark.svg' },
		group: ['output'],
		version: [1],
		subtitle: '={{ $parameter["operation"] + ": " + $parameter["resource"] }}',
		description: 'Put work on the AI Task Board, let people decide, do work from outside',
		defaults: { name: 'AI Task Board' },
		usableAsTool: true,
		inputs: [NodeConnectionTypes.Main],
		outputs: [NodeConnectionTypes.Main],
		credentials: [{ name: 'aiTaskBoardApi', required: true }],
		// Where the board calls when a task has ended for which Send and Wait waits.
		webhooks: [
			{
				name: 'default',
				httpMethod: 'POST',
				responseMode: 'onReceived',
				path: '={{ $nodeId }}',
				restartWebhook: true,
				isFullPath: true,
			},
		],
		properties: [
			{
				displayName: 'Resource',
				name: 'resource',
				type: 'options',
				noDataExpression: true,
				default: 'task',
				options: [
					{ name: 'Claim', value: 'claim' },
					{ name: 'Report', value: 'report' },
					{ name: 'Review', value: 'review' },
					{ name: 'Task', value: 'task' },
				],
			},
			...taskFields,
			...reviewFields,
			...claimFields,
			...reportFields,
		],
	};

	methods = {
		loadOptions: {
			async getTypes(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
				const types = await all(this, { method: 'GET', path: '/types' }, 1000);
				return types.map((it) => ({ name: String(it.name), value: String(it.name) }));
			},
		},
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const found: INodeExecutionData[] = [];
		for (let item = 0; item < this.getInputData().length; item++) {
			try {
				const resource = this.getNodeParameter('resource', item) as string;
				const operation = this.getNodeParameter('operation', item) as string;
				// One execution waits for one thing, so this is done for the first item only.
				if (operation === 'sendAndWait') return [await sendAndWait(this)];
				found.push(...items(await OPERATIONS[`${resource}.${operation}`](this, item), item));
			} catch (error) {
				if (!this.continueOnFail()) {
					throw new NodeOperationError(this.getNode(), error as Error, { itemIndex: item });
				}
				found.push({ json: { error: (error as Error).message }, pairedItem: { item } });
			}
		}
		return [found];
	}

	async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
		return { workflowData: [this.helpers.returnJsonArray([answered(this.getBodyData())])] };
	}
}
