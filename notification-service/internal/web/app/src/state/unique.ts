/** The items without those that an earlier one has the id of; of two, the later one's values are kept. */
export function uniqueById<Item extends { id: string }>(items: Item[]): Item[] {
  return [...new Map(items.map((item) => [item.id, item])).values()];
}
