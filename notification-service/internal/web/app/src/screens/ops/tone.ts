/** The classes that give a badge its colour, which are those of a report's statuses. */
export const TONE = { waiting: 'pending', moving: 'in_progress', good: 'resolved', bad: 'rejected' } as const;
