/** Digits as telephone numbers have them: 112, 0800-1-500-123, (0251) 8321075, +62 21 3456789. */
const NUMBER = /(?<![\d.,:/])(?:\+|\(0)?\d(?:[\d\s()-]*\d)?(?![\d:/]|[.,]\d)/g;
/** A year, or hours such as 8-16, which nobody can call. */
const fits = (text: string) => /\d{3}/.test(text) && !/^(?:19|20)\d\d$/.test(text);

/** A text whose telephone numbers can be called with a tap. */
export function WithPhones({ text }: { text: string }) {
  const parts = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(NUMBER)) {
    if (!fits(found)) continue;
    parts.push(text.slice(end, index), <Phone key={index} number={found} />);
    end = index + found.length;
  }
  return (
    <>
      {parts}
      {text.slice(end)}
    </>
  );
}

/** A number that can be called with a tap. */
export function Phone({ number }: { number: string }) {
  return <a href={`tel:${number.replace(/[^\d+*#]/g, '')}`}>{number}</a>;
}
