/**
 * Positions in streams, as the ids of events have them: v1.<epoch>.<seq>. The
 * ids of officials have two pairs, v1.<epoch>.<seq>.<epoch>.<seq>: their own
 * stream and that of their role come as one.
 */

interface Position {
  epoch: string;
  seq: number;
}

function parse(id: string): Position[] {
  const parts = id.split('.').slice(1);
  return parts.flatMap((epoch, i) => (i % 2 === 0 ? [{ epoch, seq: Number(parts[i + 1]) }] : []));
}

/** Whether id is ahead of other in any stream. */
export function isAhead(id: string, other: string): boolean {
  const others = parse(other);
  return parse(id).some(({ epoch, seq }, i) => epoch !== others[i]?.epoch || seq > others[i].seq);
}

/** The position that is as far as each of the two in every stream. */
export function furthest(id: string, other: string): string {
  const others = parse(other);
  const most = parse(id).map(({ epoch, seq }, i) => {
    const same = epoch === others[i]?.epoch ? others[i].seq : 0;
    return `${epoch}.${Math.max(seq, same)}`;
  });
  return ['v1', ...most].join('.');
}

/**
 * How many notifications there are from other to id, in all streams together:
 * the next one is 1. NaN where a stream has begun again, so that nobody knows.
 */
export function steps(id: string, other: string): number {
  const others = parse(other);
  return parse(id).reduce((sum, { epoch, seq }, i) => sum + (epoch === others[i]?.epoch ? seq - others[i].seq : NaN), 0);
}
