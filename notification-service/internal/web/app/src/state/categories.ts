import { signal } from '@preact/signals';

import { must, reportService, type Category } from '../api/client';

/** What a report can be about; empty until it is known. */
export const categories = signal<Category[]>([]);

export async function loadCategories(): Promise<void> {
  categories.value = (await must(reportService.GET('/categories'))).categories;
}
