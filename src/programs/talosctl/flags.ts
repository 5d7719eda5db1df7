/** Values of flags: parsers for commander options, and the two spellings of arguments it does not know. */

import { type Command, InvalidArgumentError, type Option } from 'commander'
import { parseDuration } from '../../wire/duration.ts'

/** Collects a flag that may be repeated and may hold several values with commas between them. */
export function list(): (value: string) => string[] {
  const values: string[] = []
  return (value) => {
    values.push(
      ...value
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== ''),
    )
    return values
  }
}

/** Collects a flag that may be repeated; commas are part of a value. */
export function array(): (value: string) => string[] {
  const values: string[] = []
  return (value) => {
    values.push(value)
    return values
  }
}

/** A whole number within bounds. */
export function integer(min = -2147483648, max = 2147483647): (value: string) => number {
  return (value) => {
    const number = Number(value)
    if (!/^[+-]?\d+$/.test(value) || number < min || number > max) {
      throw new InvalidArgumentError(`want a whole number from ${min} to ${max}`)
    }
    return number
  }
}

/** A duration such as "1m30s" in milliseconds. */
export function duration(value: string): number {
  const nanoseconds = parseDuration(value)
  if (nanoseconds === undefined) throw new InvalidArgumentError('want a duration like "30s", "5m" or "1h30m"')
  return nanoseconds / 1e6
}

/** The arguments with "--flag=false", "--flag=true" and "-f=value" in the spelling that commander parses. */
export function spell(args: readonly string[], command: Command): string[] {
  const options = new Map<string, Option>()
  const visit = (one: Command) => {
    for (const option of one.options) {
      if (option.long) options.set(option.long, option)
      if (option.short) options.set(option.short, option)
    }
    one.commands.forEach(visit)
  }
  visit(command)
  const result: string[] = []
  for (const [index, arg] of args.entries()) {
    if (arg === '--') return [...result, ...args.slice(index)]
    const match = /^(--[^=]+|-[^-=])=(.*)$/s.exec(arg)
    const option = match?.[1] ? options.get(match[1]) : undefined
    if (!match || !option) result.push(arg)
    else if (option.isBoolean()) result.push(...boolean(option, match[2] ?? '', options))
    else if (match[1]?.startsWith('--')) result.push(arg)
    else result.push(match[1] ?? '', match[2] ?? '')
  }
  return result
}

function boolean(option: Option, value: string, options: Map<string, Option>): string[] {
  if (['true', 't', '1', 'TRUE', 'True'].includes(value)) return [option.long ?? '']
  if (!['false', 'f', '0', 'FALSE', 'False'].includes(value)) return [`${option.long}=${value}`]
  const negated = `--no-${option.long?.slice(2)}`
  return options.has(negated) ? [negated] : []
}
