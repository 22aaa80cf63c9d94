/** Notes on changes of status that officials have written and not saved yet. */
import { signal } from '@preact/signals';

import type { Template } from '../api/client';
import { userData } from './storage';

const MAX_KEPT = 20;

/** Pairs of a report's id and the note, the latest first. */
const notes = userData<[id: string, note: string][]>('notes', () => []);

export function noteOn(reportId: string): string {
  return notes.value.find(([id]) => id === reportId)?.[1] ?? '';
}

export function keepNote(reportId: string, note: string): void {
  const others = notes.value.filter(([id]) => id !== reportId);
  notes.value = note ? [[reportId, note] as [string, string], ...others].slice(0, MAX_KEPT) : others;
}

/** A template that was chosen by a key, for the form of this report; it is absent once the form has it. */
export const chosenTemplate = signal<{ report: string; template: Template } | undefined>();

/** The report whose form is to ask for a photo of the finished work, because a key was pressed; absent once it asks. */
export const finishedReport = signal<string | undefined>();

export function chooseTemplate(report: string, template: Template): void {
  chosenTemplate.value = { report, template };
}
