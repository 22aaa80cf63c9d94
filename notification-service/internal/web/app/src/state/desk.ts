/** The desk's data besides reports: departments, templates, and officials. */
import { signal } from '@preact/signals';

import { must, reportService, type Department, type Person, type QueueWaiting, type Template } from '../api/client';
import { loadScope } from './scope';
import { session } from './session';

export const departments = signal<Department[]>([]);
/** The parts of the city, by the names that its first language or the reader's has for them; empty in a city without. */
export const areas = signal<{ code: string; name: string }[]>([]);
/** Absent until they are known. */
export const templates = signal<Template[] | undefined>();
/** The numbers of things that wait for officials besides the queue; absent until they are known. */
export const waiting = signal<QueueWaiting | undefined>();
/** Officials who have reports, by name. */
export const officials = signal<Person[]>([]);

/** Reads all of it. */
export async function loadDesk(): Promise<void> {
  const [known, parts, written, counts] = await Promise.all([
    must(reportService.GET('/reports/departments')),
    must(reportService.GET('/areas', { params: { query: { geometry: 'none' } } })).then(
      ({ features }) => features.map(({ properties }) => properties),
      () => areas.value, // there is work without their names
    ),
    must(reportService.GET('/reports/templates')),
    must(reportService.GET('/reports/queue/counts', { params: { query: {} } })),
    loadScope(),
  ]);
  departments.value = known.departments;
  areas.value = parts;
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

/** The name of an area; one that is gone goes by its code. */
export function areaName(code: string): string {
  return areas.value.find((each) => each.code === code)?.name ?? code;
}

/** The official who reads. */
export function me(): Person {
  const { sub = '', name } = session.value ?? {};
  return { id: sub, name: name || sub };
}
