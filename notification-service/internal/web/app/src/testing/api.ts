/** Answers of the services, for tests. */
import { vi } from 'vitest';

import {
  notificationService,
  reportService,
  type Category,
  type Notification,
  type OwnScope,
  type Problem,
  type Report,
} from '../api/client';

type Answer = { data?: unknown; error?: unknown; response: Response };

export function ok(data: unknown): Answer {
  return { data, response: new Response(null, { status: 200 }) };
}

export function refused(status: number, kind: string, errors?: Problem['errors']): Answer {
  const error: Problem = { type: `https://example.org/problems.md#${kind}`, title: kind, status, ...(errors && { errors }) };
  return { error, response: new Response(null, { status }) };
}

type Handler = (
  path: string,
  options: { params?: Record<string, Record<string, unknown>>; body?: unknown; headers?: Record<string, string> },
) => Answer | Promise<Answer>;

/** Lets handle answer all requests of a method to a service, and records them. */
export function serve(
  service: typeof reportService | typeof notificationService,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  handle: Handler,
) {
  return vi
    .spyOn(service as unknown as Record<typeof method, Handler>, method)
    .mockImplementation(async (path, options = {}) => handle(path, options));
}

/** A promise that the test settles when it likes. */
export function deferred<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((r) => (resolve = r));
  return { promise, resolve };
}

export function report(part: Partial<Report> = {}): Report {
  return {
    id: 'r1',
    title: 'Dark crossing',
    description: '',
    category_id: 2,
    category_name: 'Street lights and signals',
    privacy_level: 'public',
    visibility: 'public',
    status: 'pending',
    closed: false,
    transitions: [
      { status: 'in_progress', note_required: false },
      { status: 'resolved', note_required: false },
      { status: 'rejected', note_required: true },
    ],
    score: 0,
    version: 1,
    mine: false,
    photos: [],
    address: '',
    created_at: '2026-01-01T12:00:00Z',
    updated_at: '2026-01-01T12:00:00Z',
    ...part,
  };
}

/** The scope of an official of the whole city, and that of one of the department for street lights. */
export const wholeCity: OwnScope = { scope: 'city', moderator: true, departments: [], unknown: [] };
export const lightsAlone: OwnScope = {
  scope: 'department',
  moderator: false,
  departments: [{ id: 1, code: 'lights', name: 'Lights' }],
  unknown: [],
};

export function category(part: Partial<Category> = {}): Category {
  return { id: 2, name: 'Street lights and signals', hint: '', group: '', icon: 'lamp', accepts_reports: true, ...part };
}

export function notification(part: Partial<Notification> = {}): Notification {
  return {
    id: 'n1',
    type: 'report.vote.received',
    report_id: 'r1',
    report_title: 'Dark crossing',
    report_version: 2,
    happened_at: '2026-01-01T12:00:00Z',
    created_at: '2026-01-01T12:00:00Z',
    read: false,
    ...part,
  };
}
