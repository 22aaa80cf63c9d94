import { afterEach, expect, test } from 'vitest';

import { setLanguage } from '../lang/i18n';
import { categories } from '../state/categories';
import { category, notification } from '../testing/api';
import { describe } from './describe';

test.each([
  [{ type: 'report.created', category_name: 'Graffiti' }, 'New report: Graffiti'],
  [{ type: 'report.created' }, 'New report'],
  [{ type: 'report.status.updated', status: 'in_progress' }, 'Now: In progress'],
  [{ type: 'report.vote.received', vote_type: 'upvote', score: 1_200 }, 'Someone voted for it: 1,200 votes'],
  [{ type: 'report.vote.received', vote_type: 'upvote', score: 1 }, 'Someone voted for it: 1 vote'],
  [{ type: 'report.vote.received', vote_type: 'downvote', score: -2 }, 'Someone voted against it: -2 votes'],
  [{ type: 'report.vote.received', vote_type: 'downvote', score: -1 }, 'Someone voted against it: -1 vote'],
  [{ type: 'report.moderated', action: 'hidden', note: 'It names somebody' }, 'Hidden by the city: It names somebody'],
  [{ type: 'report.moderated', action: 'hidden' }, 'The city has hidden it'],
  [{ type: 'report.moderated', action: 'shown' }, 'It is shown again'],
  [{ type: 'report.moderated', action: 'private' }, 'Only the city sees this'],
  [{ type: 'report.moderated', action: 'withdrawn' }, 'It was withdrawn'],
] as const)('%o: %s', (part, want) => expect(describe(notification(part))).toBe(want));

afterEach(() => setLanguage('en'));

test.each([
  ['report.created', 'Laporan baru: Jalan berlubang'],
  ['report.overdue', 'Jalan berlubang'],
  ['report.corrected', 'Jalan berlubang'],
] as const)('%s has its category in the language of its reader', async (type, want) => {
  categories.value = [category({ id: 1, name: 'Jalan berlubang' })];
  const event = notification({ type, category_id: 1, category_name: 'Potholes', previous_category_id: 2 });
  expect(describe(event)).toContain('Potholes'); // as it was written
  await setLanguage('id');
  expect(describe(event)).toContain(want);
  expect(describe(notification({ type, category_id: 9, category_name: 'Potholes', previous_category_id: 2 }))).toContain('Potholes');
});
