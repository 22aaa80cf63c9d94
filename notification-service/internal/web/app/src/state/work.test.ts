import { expect, test, vi } from 'vitest';

vi.mock('../live/live', () => ({ onStream: () => {} }));

import { reportService } from '../api/client';
import { deferred, ok, report, serve } from '../testing/api';
import { createWork, mergeReport } from './work';

test('an answer from before an act is not shown after it', async () => {
  const work = (...notes: string[]) => ({ report: report(), acts: notes.map((text) => ({ text })) });
  let now = work();
  serve(reportService, 'GET', (path) => ok(path.endsWith('work') ? now : report()));
  serve(reportService, 'POST', () => ok((now = work('Seen'))));
  const open = createWork('r1', () => {});
  await open.load();

  const late = deferred<ReturnType<typeof ok>>();
  const get = serve(reportService, 'GET', (path) => (path.endsWith('work') ? late.promise : ok(report())));
  const reading = open.load();
  get.mockImplementation(async (path) => ok(path.endsWith('work') ? now : report()));
  await open.addNote('Seen');
  late.resolve(ok(work()));
  await reading;
  expect(open.work.value?.acts).toMatchObject([{ text: 'Seen' }]);
});

test('an answer from before a merge by key is not shown after it', async () => {
  const task = (merged: boolean) => ({ ...report(), ...(merged && { duplicate_of: 'r2' }) });
  const late = deferred<ReturnType<typeof ok>>();
  serve(reportService, 'GET', (path) => (path.endsWith('work') ? late.promise : ok(report())));
  serve(reportService, 'PUT', () => ok({ report: task(true) }));
  const shown: unknown[] = [];
  const open = createWork('r1', (seen) => shown.push(seen.duplicate_of));
  const end = open.watch();
  const reading = open.load();
  await mergeReport('r1', 'r2');
  late.resolve(ok({ report: task(false) }));
  await reading;
  expect(shown).toEqual([]);
  end();
});
