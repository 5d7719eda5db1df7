/** What a parameter of the kernel command line is, and checks of its value. */
import { type Parameter, parameterValues } from '../../../wire/command-line.ts'
import { messageOf } from '../../../wire/error-message.ts'

/** A parameter that has a meaning here, or one whose meaning elsewhere is refused. */
export interface KernelParameter {
  readonly name: string
  /** Its value in the documentation. */
  readonly value: string
  /** What it does, or what to do instead, in one clause. */
  readonly effect: string
  /** Which value applies where it is repeated; the last, unless specified. */
  readonly repeated?: 'first' | 'all'
  /** It has no effect with this value; with any, where it is `always`. */
  readonly refused?: 'always' | string
  /** Its value may hold a secret, and is not printed. */
  readonly secret?: true
  /** An installation passes it on to the installed system. */
  readonly kept?: true
  /** What is wrong with a value, if anything. */
  check?(value: string, all: readonly Parameter[]): string | undefined
}

/** Values that mean true. */
const affirmative = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])
const negative = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False'])

/** Whether a switch is on. */
export const isOn = (parameters: readonly Parameter[], name: string): boolean =>
  affirmative.has(parameterValues(parameters, name).at(-1) ?? '')

/** A switch; anything else counts as off. */
export const boolean = (value: string): string | undefined =>
  affirmative.has(value) || negative.has(value) ? undefined : 'use 1 or 0; anything else counts as 0'

/** One of a few words. */
export const oneOf =
  (...words: readonly string[]) =>
  (value: string): string | undefined =>
    words.includes(value) ? undefined : `use ${words.join(' or ')}`

/** What a parser accepts that throws an error of one line. */
export const accepted =
  (parse: (value: string) => unknown) =>
  (value: string): string | undefined => {
    try {
      parse(value)
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }
