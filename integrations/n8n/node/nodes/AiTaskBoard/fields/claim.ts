import type { INodeProperties } from 'n8n-workflow';

const taking = { show: { resource: ['claim'], operation: ['create'] } };
const holding = {
	show: {
		resource: ['claim'],
		operation: ['complete', 'fail', 'heartbeat', 'progress', 'release'],
	},
};

export const claimFields: INodeProperties[] = [
	{
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		displayOptions: { show: { resource: ['claim'] } },
		default: 'create',
		options: [
			{
				name: 'Complete',
				value: 'complete',
				action: 'Complete a claim',
				description: 'Hand in the result of claimed work',
			},
			{
				name: 'Create',
				value: 'create',
				action: 'Claim work',
				description: 'Take tasks that wait for work from outside; one item for each',
			},
			{
				name: 'Fail',
				value: 'fail',
				action: 'Fail a claim',
				description: 'Say that claimed work has failed',
			},
			{
				name: 'Heartbeat',
				value: 'heartbeat',
				action: 'Keep a claim',
				description: 'Keep a claim for as long again',
			},
			{
				name: 'Progress',
				value: 'progress',
				action: 'Report progress of a claim',
				description: 'Say how far claimed work is',
			},
			{
				name: 'Release',
				value: 'release',
				action: 'Release a claim',
				description: 'Give claimed work back untouched',
			},
		],
	},
	{
		displayName: 'Worker',
		name: 'worker',
		type: 'string',
		default: 'n8n',
		required: true,
		displayOptions: taking,
		description: 'The name under which the work stands in histories',
	},
	{
		displayName: 'Types',
		name: 'types',
		type: 'string',
		default: '',
		displayOptions: taking,
		description:
			'Only tasks of these types, separated by commas. Empty: of all that the key may work on.',
	},
	{
		displayName: 'Limit',
		name: 'limit',
		type: 'number',
		typeOptions: { minValue: 1 },
		default: 50,
		displayOptions: taking,
		description: 'Max number of results to return',
	},
	{
		displayName: 'Lease',
		name: 'lease',
		type: 'number',
		typeOptions: { minValue: 1, maxValue: 3600 },
		default: 300,
		displayOptions: {
			show: { resource: ['claim'], operation: ['create', 'heartbeat'] },
		},
		description: 'For so many seconds the work is yours; afterwards somebody else gets it',
	},
	{
		displayName: 'Claim ID',
		name: 'claimId',
		type: 'string',
		default: '={{ $json.claim_id }}',
		required: true,
		displayOptions: holding,
		description: 'The claim_id that came with the work',
	},
	{
		displayName: 'Result',
		name: 'result',
		type: 'json',
		default: '{}',
		displayOptions: { show: { resource: ['claim'], operation: ['complete'] } },
		description: 'What came out, as JSON',
	},
	{
		displayName: 'Message',
		name: 'message',
		type: 'string',
		default: '',
		required: true,
		displayOptions: { show: { resource: ['claim'], operation: ['fail'] } },
		description: 'Why it failed, for people',
	},
	{
		displayName: 'Class',
		name: 'class',
		type: 'options',
		default: 'transient',
		displayOptions: { show: { resource: ['claim'], operation: ['fail'] } },
		description: 'What follows from the failure',
		options: [
			{ name: 'Permanent', value: 'permanent', description: 'It would fail again' },
			{ name: 'Quota', value: 'quota', description: 'Too much was asked for; tried again later' },
			{ name: 'Transient', value: 'transient', description: 'Tried again' },
			{
				name: 'Unknown',
				value: 'unknown',
				description: 'Something may have happened outside; a person is asked',
			},
		],
	},
	{
		displayName: 'Percent',
		name: 'percent',
		type: 'number',
		typeOptions: { minValue: 0, maxValue: 100 },
		default: 0,
		displayOptions: { show: { resource: ['claim'], operation: ['progress'] } },
		description: 'How much of it is done',
	},
	{
		displayName: 'Message',
		name: 'message',
		type: 'string',
		default: '',
		displayOptions: { show: { resource: ['claim'], operation: ['progress'] } },
		description: 'What is going on, for people',
	},
];
