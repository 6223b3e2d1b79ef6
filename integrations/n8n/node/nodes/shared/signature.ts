import { createHmac, timingSafeEqual } from 'crypto';
import type { IDataObject } from 'n8n-workflow';

// A call that was signed longer ago than this is a copy that somebody has kept; seconds.
const TOLERANCE = 300;

/**
 * The secret that signs what goes to one address. Made from the API key, so that nothing has to be kept, and whoever does
 * not have the key cannot make it.
 */
export function secretFor(apiKey: string, url: string): string {
	const made = createHmac('sha256', apiKey).update(`ai-task-board-trigger ${url}`).digest('base64');
	return `whsec_${made}`;
}

/**
 * Whether a call comes from the board: Standard Webhooks, HMAC-SHA256 over `id.timestamp.body`.
 * secret: `whsec_` and base64. moment: now, in seconds.
 */
export function comesFromTheBoard(
	headers: IDataObject,
	body: Buffer,
	secret: string,
	moment = Date.now() / 1000,
): boolean {
	const id = String(headers['webhook-id'] ?? '');
	const at = String(headers['webhook-timestamp'] ?? '');
	if (!(Math.abs(moment - Number(at)) <= TOLERANCE)) return false;
	const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
	const expected = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest();
	return String(headers['webhook-signature'] ?? '')
		.split(' ')
		.some((given) => {
			const theirs = Buffer.from(given.replace(/^v1,/, ''), 'base64');
			return theirs.length === expected.length && timingSafeEqual(theirs, expected);
		});
}
