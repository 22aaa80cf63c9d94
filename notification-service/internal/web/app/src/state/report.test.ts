import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

vi.mock('../live/live', () => ({ onStream: () => {} }));

import { Failure, reportService, type Report } from '../api/client';
import { deferred, ok, refused, report, serve } from '../testing/api';
import { createReport } from './report';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A report as the service has it; what is asked for is what it is at that moment. */
async function opened(part: Partial<Report> = {}) {
  const service = { now: report(part) };
  serve(reportService, 'GET', (path) => ok(path.endsWith('history') ? { history: [] } : service.now));
  const open = createReport('r1');
  await open.load();
  return { open, service };
}

test('an answer that an event has overtaken changes nothing', async () => {
  const { open } = await opened({ version: 5, score: 5 });
  const late = deferred<ReturnType<typeof ok>>();
  serve(reportService, 'GET', (path) => (path.endsWith('history') ? ok({ history: [] }) : late.promise));
  const loaded = open.load();
  late.resolve(ok(report({ version: 4, score: 4 })));
  await loaded;
  expect(open.report.value).toMatchObject({ version: 5, score: 5 });
});

test('a history that was asked for earlier and came later is not shown', async () => {
  const { open } = await opened();
  const late = deferred<ReturnType<typeof ok>>();
  const get = serve(reportService, 'GET', (path) => (path.endsWith('history') ? late.promise : ok(report())));
  const earlier = open.load();
  get.mockImplementation(async (path) => ok(path.endsWith('history') ? { history: [{ note: 'Done' }] } : report()));
  await open.load();
  late.resolve(ok({ history: [] }));
  await earlier;
  expect(open.history.value).toMatchObject([{ note: 'Done' }]);
});

describe('a vote', () => {
  test('is cast, and withdrawn when it is pressed again', async () => {
    const { open } = await opened();
    const post = serve(reportService, 'POST', () => ok({ vote_type: 'upvote', score: 1, version: 2 }));
    await open.vote('upvote');
    expect(post.mock.lastCall?.[1].body).toEqual({ vote_type: 'upvote' });
    expect(open.report.value).toMatchObject({ my_vote: 'upvote', score: 1, version: 2 });
    serve(reportService, 'DELETE', () => ok({ score: 0, version: 3 }));
    await open.vote('upvote');
    expect(open.report.value).toMatchObject({ score: 0, version: 3 });
    expect(open.report.value).not.toHaveProperty('my_vote');
  });
});

describe('a change of status', () => {
  test('names the version that the official saw', async () => {
    const { open } = await opened({ version: 4 });
    const patch = serve(reportService, 'PATCH', () => ok(report({ status: 'resolved', version: 5 })));
    await open.changeStatus(report({ version: 4 }), 'resolved', '');
    expect(patch.mock.lastCall?.[1]).toMatchObject({ params: { header: { 'If-Match': '"4"' } }, body: { status: 'resolved' } });
    expect(open.report.value).toMatchObject({ status: 'resolved', version: 5 });
  });

  test('is tried again when it was only a vote that came between', async () => {
    const { open, service } = await opened({ version: 4 });
    service.now = report({ version: 5, score: 1 });
    const patch = serve(reportService, 'PATCH', (_, { params }) =>
      params?.header?.['If-Match'] === '"5"' ? ok(report({ status: 'resolved', version: 6 })) : refused(412, 'stale-version'),
    );
    await open.changeStatus(report({ version: 4 }), 'resolved', 'Done.');
    expect(patch).toHaveBeenCalledTimes(2);
    expect(open.report.value?.status).toBe('resolved');
  });

  test('is given back when another official was faster', async () => {
    const { open, service } = await opened({ version: 4 });
    service.now = report({ version: 5, status: 'rejected' });
    const patch = serve(reportService, 'PATCH', () => refused(412, 'stale-version'));
    await expect(open.changeStatus(report({ version: 4 }), 'resolved', '')).rejects.toBeInstanceOf(Failure);
    expect(patch).toHaveBeenCalledOnce();
    expect(open.report.value?.status).toBe('rejected');
  });

  test('is not tried for ever', async () => {
    const { open, service } = await opened({ version: 4 });
    const patch = serve(reportService, 'PATCH', () => {
      service.now = report({ version: service.now.version + 1 }); // votes and votes
      return refused(412, 'stale-version');
    });
    await expect(open.changeStatus(report({ version: 4 }), 'resolved', '')).rejects.toBeInstanceOf(Failure);
    expect(patch).toHaveBeenCalledTimes(5);
  });
});
