/**
 * Positions in streams, as the ids of events have them: v1.<epoch>.<seq>, and
 * for those who hear two streams v1.<epoch>.<seq>.<epoch>.<seq>.
 */

type Lane = { epoch: string; seq: number };

function lanes(id: string): Lane[] {
  const parts = id.split('.').slice(1);
  return parts.flatMap((epoch, i) => (i % 2 === 0 ? [{ epoch, seq: Number(parts[i + 1]) }] : []));
}

/** Whether id is ahead of other in any stream. */
export function ahead(id: string, other: string): boolean {
  const others = lanes(other);
  return lanes(id).some(({ epoch, seq }, i) => epoch !== others[i]?.epoch || seq > others[i].seq);
}

/** The position that is as far as each of the two in every stream. */
export function furthest(id: string, other: string): string {
  const others = lanes(other);
  const most = lanes(id).map(({ epoch, seq }, i) => {
    const same = epoch === others[i]?.epoch ? others[i].seq : 0;
    return `${epoch}.${Math.max(seq, same)}`;
  });
  return ['v1', ...most].join('.');
}
