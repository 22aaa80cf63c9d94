/** A number with its name; a warning one wants somebody's attention. */
export function Figure({ label, value, warn }: { label: string; value: string; warn?: boolean }) {
  return (
    <div class="figure" data-warn={warn}>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}
