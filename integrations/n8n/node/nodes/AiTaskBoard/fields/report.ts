import type { INodeProperties } from 'n8n-workflow';

export const reportFields: INodeProperties[] = [
	{
		displayName: 'Operation',
		name: 'operation',
		type: 'options',
		noDataExpression: true,
		displayOptions: { show: { resource: ['report'] } },
		default: 'get',
		options: [
			{
				name: 'Get',
				value: 'get',
				action: 'Get a report',
				description: 'The figures of one week',
			},
		],
	},
	{
		displayName: 'Week',
		name: 'week',
		type: 'string',
		default: '={{ $now.toFormat("kkkk-\'W\'WW") }}',
		required: true,
		displayOptions: { show: { resource: ['report'], operation: ['get'] } },
		description: 'ISO year and week, such as 2026-W48; the running week is allowed',
	},
];
