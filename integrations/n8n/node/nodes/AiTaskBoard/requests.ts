import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { jsonParse, NodeOperationError } from 'n8n-workflow';
import { all, call, filled, parts } from '../shared/board';

type Operation = (node: IExecuteFunctions, item: number) => Promise<IDataObject | IDataObject[]>;

/** Every operation but Send and Wait, by resource and name. A list gives one item for each of its rows. */
export const OPERATIONS: Record<string, Operation> = {
	'task.create': async (node, item) =>
		await call(
			node,
			{
				method: 'POST',
				path: '/tasks',
				query: waitQuery(node, item),
				body: taskBody(node, item),
			},
			item,
		),
	'task.get': async (node, item) =>
		await call(
			node,
			{ method: 'GET', path: taskPath(node, item), query: waitQuery(node, item) },
			item,
		),
	'task.getAll': async (node, item) => {
		const filters = node.getNodeParameter('filters', item, {}) as IDataObject;
		const query = filled({ ...filters, status: ((filters.status as string[]) ?? []).join(',') });
		return await all(node, { method: 'GET', path: '/tasks', query }, most(node, item), item);
	},
	'task.cancel': async (node, item) =>
		await call(
			node,
			{ method: 'POST', path: `${taskPath(node, item)}/cancel`, body: reason(node, item) },
			item,
		),
	'task.requeue': async (node, item) =>
		await call(
			node,
			{ method: 'POST', path: `${taskPath(node, item)}/requeue`, body: reason(node, item) },
			item,
		),
	'review.get': async (node, item) =>
		await call(node, { method: 'GET', path: reviewPath(node, item) }, item),
	'review.getAll': async (node, item) => {
		const query = filled(node.getNodeParameter('filters', item, {}) as IDataObject);
		return await all(node, { method: 'GET', path: '/reviews', query }, most(node, item), item);
	},
	'review.decide': async (node, item) => {
		const edits = objectOf(node, 'edits', item);
		const body = filled({
			verdict: text(node, 'verdict', item),
			version: node.getNodeParameter('version', item) as number,
			content_hash: text(node, 'contentHash', item),
			instruction: text(node, 'instruction', item),
			reason: text(node, 'reason', item),
			edits: Object.keys(edits).length ? edits : undefined,
		});
		return await call(
			node,
			{ method: 'POST', path: `${reviewPath(node, item)}/decision`, body },
			item,
		);
	},
	'claim.create': async (node, item) => {
		const types = parts(text(node, 'types', item));
		const body = filled({
			worker: text(node, 'worker', item),
			types: types.length ? types : undefined,
			limit: Math.min(node.getNodeParameter('limit', item) as number, 50),
			lease: node.getNodeParameter('lease', item) as number,
		});
		const page = await call(node, { method: 'POST', path: '/claims', body }, item);
		return page.data as IDataObject[];
	},
	'claim.complete': async (node, item) =>
		await claim(node, item, 'complete', { result: valueOf(node, 'result', item) }),
	'claim.fail': async (node, item) =>
		await claim(node, item, 'fail', {
			message: text(node, 'message', item),
			class: text(node, 'class', item),
		}),
	'claim.heartbeat': async (node, item) =>
		await claim(node, item, 'heartbeat', { lease: node.getNodeParameter('lease', item) as number }),
	'claim.progress': async (node, item) =>
		await claim(
			node,
			item,
			'progress',
			filled({
				percent: node.getNodeParameter('percent', item) as number,
				message: text(node, 'message', item),
			}),
		),
	'claim.release': async (node, item) => await claim(node, item, 'release', {}),
	'report.get': async (node, item) =>
		await call(node, { method: 'GET', path: `/reports/${segment(node, 'week', item)}` }, item),
};

/** The body of POST /tasks. It names the execution, so that people find their way back to it. */
export function taskBody(node: IExecuteFunctions, item: number): IDataObject {
	const { tags, ...more } = node.getNodeParameter('additionalFields', item, {}) as IDataObject;
	return filled({
		type: text(node, 'type', item),
		task_id: text(node, 'taskId', item),
		payload: objectOf(node, 'payload', item),
		tags: tags ? parts(tags) : undefined,
		origin: filled({
			system: 'n8n',
			workflow_id: node.getWorkflow().id,
			execution_id: node.getExecutionId(),
		}),
		...filled(more),
	});
}

/** Items of what the board answered. */
export function items(found: IDataObject | IDataObject[], item: number): INodeExecutionData[] {
	const rows = Array.isArray(found) ? found : [found];
	return rows.map((json) => ({ json, pairedItem: { item } }));
}

async function claim(node: IExecuteFunctions, item: number, step: string, body: IDataObject) {
	const path = `/claims/${segment(node, 'claimId', item)}/${step}`;
	return await call(node, { method: 'POST', path, body }, item);
}

function text(node: IExecuteFunctions, name: string, item: number): string {
	return String(node.getNodeParameter(name, item, '') ?? '');
}

function segment(node: IExecuteFunctions, name: string, item: number): string {
	const value = text(node, name, item).trim();
	if (!value) {
		throw new NodeOperationError(node.getNode(), `The parameter ${name} is empty.`, {
			itemIndex: item,
		});
	}
	return encodeURIComponent(value);
}

function taskPath(node: IExecuteFunctions, item: number): string {
	return `/tasks/${segment(node, 'taskId', item)}`;
}

function reviewPath(node: IExecuteFunctions, item: number): string {
	return `/reviews/${segment(node, 'reviewId', item)}`;
}

function reason(node: IExecuteFunctions, item: number): IDataObject {
	return filled({ reason: text(node, 'reason', item) });
}

function waitQuery(node: IExecuteFunctions, item: number): IDataObject {
	const wait = node.getNodeParameter('wait', item, 0) as number;
	return wait ? { wait } : {};
}

function most(node: IExecuteFunctions, item: number): number {
	const everything = node.getNodeParameter('returnAll', item, false) as boolean;
	return everything ? Infinity : (node.getNodeParameter('limit', item) as number);
}

/** A JSON parameter: text as it is typed, or a value that an expression gave. */
function valueOf(node: IExecuteFunctions, name: string, item: number): IDataObject {
	const given = node.getNodeParameter(name, item, {});
	if (typeof given !== 'string') return given as IDataObject;
	try {
		return jsonParse<IDataObject>(given || '{}');
	} catch {
		throw new NodeOperationError(node.getNode(), `The parameter ${name} is not valid JSON.`, {
			itemIndex: item,
		});
	}
}

function objectOf(node: IExecuteFunctions, name: string, item: number): IDataObject {
	const value: unknown = valueOf(node, name, item);
	if (typeof value !== 'object' || value === null || Array.isArray(value)) {
		throw new NodeOperationError(node.getNode(), `The parameter ${name} must be a JSON object.`, {
			itemIndex: item,
		});
	}
	return value as IDataObject;
}
