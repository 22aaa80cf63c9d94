import { expect, test, vi } from 'vitest';

vi.mock('../live/live', () => ({ onStream: () => {}, onChange: () => {} }));

import { notification } from '../testing/api';
import { describeLine, groupVotes } from './panel';

const vote = (id: string, read = false) => notification({ id, read });
const status = (id: string) => notification({ id, type: 'report.status.updated', status: 'resolved' });

test('votes that followed each other are one line; what is between them, or read, parts them', () => {
  const lines = groupVotes([vote('7'), vote('6'), status('5'), vote('4'), vote('3', true), vote('2', true), status('1')]);
  expect(lines.map((line) => line.map(({ id }) => id).join())).toEqual(['7,6', '5', '4', '3,2', '1']);
});

test('the score is that after the last vote, which may have arrived before others', () => {
  const after = (report_version: number, score: number) => notification({ report_version, score });
  expect(describeLine([after(3, 2), after(4, 3), after(2, 1)])).toBe('3 votes came in: 3 now');
});
