import type {
	IDataObject,
	IExecuteFunctions,
	IHookFunctions,
	IHttpRequestMethods,
	ILoadOptionsFunctions,
	JsonObject,
} from 'n8n-workflow';
import { NodeApiError } from 'n8n-workflow';

/** One call of the board's API. path: below /api/v1. */
export interface Call {
	method: IHttpRequestMethods;
	path: string;
	query?: IDataObject;
	body?: IDataObject;
}

type Caller = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions;

/** The JSON that the board answers. NodeApiError with the board's own sentence where it refuses. */
export async function call(from: Caller, it: Call, itemIndex?: number): Promise<IDataObject> {
	const { url } = await from.getCredentials('aiTaskBoardApi');
	try {
		return (await from.helpers.httpRequestWithAuthentication.call(from, 'aiTaskBoardApi', {
			method: it.method,
			url: `${String(url).replace(/\/+$/, '')}/api/v1${it.path}`,
			qs: it.query,
			body: it.body,
			json: true,
		})) as IDataObject;
	} catch (error) {
		throw new NodeApiError(from.getNode(), error as JsonObject, { itemIndex });
	}
}

/** Every row of a list, page by page; at most `most` of them. */
export async function all(
	from: Caller,
	it: Call,
	most: number,
	item?: number,
): Promise<IDataObject[]> {
	const rows: IDataObject[] = [];
	let cursor = '';
	do {
		const limit = Math.min(most - rows.length, 200);
		const page = await call(from, { ...it, query: { ...it.query, limit, cursor } }, item);
		rows.push(...(page.data as IDataObject[]));
		cursor = (page.next_cursor as string | null) ?? '';
	} while (cursor && rows.length < most);
	return rows;
}

/** Only what was filled in. */
export function filled(values: IDataObject): IDataObject {
	return Object.fromEntries(
		Object.entries(values).filter(
			([, value]) => value !== '' && value !== undefined && value !== null,
		),
	);
}

/** The parts of a comma list, without spaces around them. */
export function parts(text: unknown): string[] {
	return String(text ?? '')
		.split(',')
		.map((part) => part.trim())
		.filter((part) => part);
}
