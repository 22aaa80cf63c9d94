import { expect, test, vi } from 'vitest';

vi.mock('../live/live', () => ({ onStream: () => {}, onChange: () => {} }));

import { notification } from '../testing/api';
import { groupVotes } from './panel';

const vote = (id: string, read = false) => notification({ id, read });
const status = (id: string) => notification({ id, type: 'report.status.updated', status: 'resolved' });

test('votes that followed each other are one line; what is between them, or read, parts them', () => {
  const lines = groupVotes([vote('7'), vote('6'), status('5'), vote('4'), vote('3', true), vote('2', true), status('1')]);
  expect(lines.map((line) => line.map(({ id }) => id).join())).toEqual(['7,6', '5', '4', '3,2', '1']);
});
