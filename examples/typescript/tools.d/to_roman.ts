import { toRoman } from "./numerals.ts";

interface Input {
  number: number;
}

const { number } = input as Input;
return { roman: toRoman(number) };
