import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow';
import { NodeOperationError, WAIT_INDEFINITELY } from 'n8n-workflow';
import { call } from '../shared/board';
import { items, taskBody } from './requests';

const ENDED = ['done', 'failed', 'cancelled'];
const HOUR = 3_600_000; // milliseconds

/**
 * Create a task whose end continues this execution, and wait. What the board calls at the end comes in by `answered`.
 * A task that has ended already is answered at once.
 */
export async function sendAndWait(node: IExecuteFunctions): Promise<INodeExecutionData[]> {
	const resumeUrl = node.getSignedResumeUrl();
	const body = taskBody(node, 0);
	const message = node.getNodeParameter('message', 0) as string;
	body.payload = { message, ...(body.payload as IDataObject) };
	body.title ??= message.split('\n')[0].slice(0, 200);
	body.callback_url = resumeUrl;
	const task = await call(node, { method: 'POST', path: '/tasks', body }, 0);
	if (ENDED.includes(task.status as string)) return items(ended(task), 0);
	if (task.callback_url !== resumeUrl) {
		throw new NodeOperationError(
			node.getNode(),
			`The task ${task.task_id} exists already, and its end is told to somebody else`,
			{
				description: 'Give this one a Task ID of its own, or read that task with Get.',
				itemIndex: 0,
			},
		);
	}
	const hours = node.getNodeParameter('limitWait', 0, 0) as number;
	await node.putExecutionToWait(
		hours > 0 ? new Date(Date.now() + hours * HOUR) : WAIT_INDEFINITELY,
	);
	// Given on when the time is over; a call of the board takes its place.
	const late = { approved: false, timed_out: true, task_id: task.task_id, status: task.status };
	return items(late, 0);
}

/** What the board has called with at the task's end, as the item of this node. */
export function answered(body: IDataObject): IDataObject {
	return { ...ended(body.task as IDataObject), event: body.event, at: body.at };
}

/** approved: the task is done; where a person was asked, he has agreed. Agents go by this. */
function ended(task: IDataObject): IDataObject {
	return {
		approved: task.status === 'done',
		timed_out: false,
		task_id: task.task_id,
		status: task.status,
		result: task.result,
		decision: task.decision ?? null,
		last_error: task.last_error ?? null,
		task,
	};
}
