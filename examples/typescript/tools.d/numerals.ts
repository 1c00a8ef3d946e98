/** The signs and their values, greatest first. */
export const numerals: readonly (readonly [sign: string, value: number])[] = [
  ["M", 1000], ["CM", 900], ["D", 500], ["CD", 400], ["C", 100], ["XC", 90],
  ["L", 50], ["XL", 40], ["X", 10], ["IX", 9], ["V", 5], ["IV", 4], ["I", 1],
];

export function toRoman(number: number): string {
  let rest = number;
  const parts: string[] = [];
  for (const [sign, value] of numerals) {
    parts.push(sign.repeat(Math.floor(rest / value)));
    rest %= value;
  }
  return parts.join("");
}
