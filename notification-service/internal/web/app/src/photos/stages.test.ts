import { expect, test, vi } from 'vitest';

import type { StreamEvent } from '@cityconnect/stream/browser';

const streams = vi.hoisted(() => ({ mine: (_: StreamEvent) => {} }));
vi.mock('../live/live', () => ({ onStream: (_: string, listener: (event: StreamEvent) => void) => (streams.mine = listener) }));

import { stages, subscribeToStages } from './stages';

const tell = (photo_id: string, stage: string) =>
  streams.mine({ type: 'progress', id: 'v1.a.1', data: { report_id: 'r1', photo_id, stage } });

test('each photo is at the stage that was reported last', () => {
  subscribeToStages();
  tell('p1', 'checking');
  tell('p2', 'checking');
  tell('p1', 'resizing');
  expect(stages.value).toEqual({ p1: 'resizing', p2: 'checking' });
});

test('a stage that the page does not know, and other events, change nothing', () => {
  subscribeToStages();
  stages.value = { p1: 'checking' };
  tell('p1', 'painting');
  tell('p1', 'constructor');
  streams.mine({ type: 'notification', id: 'v1.a.2', data: { photo_id: 'p1', stage: 'resizing' } });
  expect(stages.value).toEqual({ p1: 'checking' });
});
