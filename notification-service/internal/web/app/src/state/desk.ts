/** What the workbench knows besides reports: departments, templates, and who works here. */
import { signal } from '@preact/signals';

import { must, reportService, type Department, type Person, type QueueWaiting, type Template } from '../api/client';
import { session } from './session';

export const departments = signal<Department[]>([]);
/** Absent until they are known. */
export const templates = signal<Template[] | undefined>();
/** What waits for officials besides the queue; absent until it is known. */
export const waiting = signal<QueueWaiting | undefined>();
/** Officials who have reports, by name. */
export const officials = signal<Person[]>([]);

/** Reads all of it. */
export async function loadDesk(): Promise<void> {
  const [known, written, counts] = await Promise.all([
    must(reportService.GET('/reports/departments')),
    must(reportService.GET('/reports/templates')),
    must(reportService.GET('/reports/queue/counts', { params: { query: {} } })),
  ]);
  departments.value = known.departments;
  templates.value = written.templates;
  officials.value = counts.assignees.flatMap(({ id, name }) => (id ? [{ id, name: name ?? id }] : []));
}

export async function loadWaiting(): Promise<void> {
  waiting.value = await must(reportService.GET('/reports/queue/waiting'));
}

/** Replaces all templates, and resolves to them as they are kept. */
export async function saveTemplates(all: Template[]): Promise<Template[]> {
  return (templates.value = (await must(reportService.PUT('/reports/templates', { body: { templates: all } }))).templates);
}

/** The official who reads. */
export function me(): Person {
  const { sub = '', name } = session.value ?? {};
  return { id: sub, name: name || sub };
}
