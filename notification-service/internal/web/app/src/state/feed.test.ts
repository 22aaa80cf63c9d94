import { describe, expect, test } from 'vitest';

import type { FeedEvent } from '../api/client';
import { report } from '../testing/api';
import { applyEvents } from './feed';

const event = (part: Partial<FeedEvent>): FeedEvent => ({
  type: 'report.vote.received',
  report_id: 'r1',
  report_version: 2,
  report_title: 'Dark crossing',
  happened_at: '2026-01-02T12:00:00Z',
  ...part,
});

describe('a report after events', () => {
  test('has the score, the status and the version of the latest', () => {
    const events = [event({ score: 5 }), event({ type: 'report.status.updated', report_version: 3, status: 'resolved' })];
    expect(applyEvents(report(), events)).toMatchObject({ score: 5, status: 'resolved', version: 3, updated_at: '2026-01-02T12:00:00Z' });
  });

  test('takes a score of 0 for a score', () => {
    expect(applyEvents(report({ score: 4 }), [event({ score: 0 })]).score).toBe(0);
  });

  test('is the very same one after what it has already, what is older, and what is about another', () => {
    const shown = report({ version: 3, score: 7 });
    const events = [
      event({ report_version: 3, score: 1 }),
      event({ report_version: 2, score: 1 }),
      event({ report_id: 'r2', report_version: 9 }),
    ];
    expect(applyEvents(shown, events)).toBe(shown);
  });

  test('offers no change of status until it is fetched, because events do not say what is allowed', () => {
    const moved = event({ type: 'report.status.updated', status: 'resolved' });
    expect(applyEvents(report(), [moved]).transitions).toEqual([]);
    expect(applyEvents(report(), [event({ score: 1 })]).transitions).toEqual(report().transitions);
  });

  test('does not go back when events come in the wrong order', () => {
    const events = [event({ report_version: 4, score: 4 }), event({ report_version: 3, score: 3 })];
    expect(applyEvents(report(), events)).toMatchObject({ version: 4, score: 4 });
  });
});
