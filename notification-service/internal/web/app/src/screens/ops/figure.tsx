/** A number with its name; with warn it asks for attention. */
export function Figure({ label, value, warn }: { label: string; value: string; warn?: boolean }) {
  return (
    <div class="figure" data-warn={warn}>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}
