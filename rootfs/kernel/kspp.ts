/**
 * Judges the options of a kernel by what the Kernel Self Protection Project requires, row by row of `kspp.tsv`. A row that is not
 * met needs a reason, and a reason needs a row that is not met.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Options } from './options.ts'

/** One thing that is required. */
export interface Requirement {
  /** The option's name, and names of other releases that mean the same. */
  readonly names: readonly string[]
  /** "y", "n", a value, or "has WORD" for a list. */
  readonly wanted: string
  /** Why it is not so here. */
  readonly reason: string | undefined
}

/** A requirement, and what a kernel has. */
export interface Finding {
  readonly requirement: Requirement
  readonly found: string
  readonly met: boolean
}

/** The table of requirements has a line that is none. */
export class RequirementError extends Error {
  override name = 'RequirementError'
}

/** Reads a table of `names<TAB>wanted[<TAB>reason]`; `#` begins a line that is a comment. */
export function requirementsIn(text: string): Requirement[] {
  const seen = new Set<string>()
  return text.split('\n').flatMap((line, at) => {
    if (!line || line.startsWith('#')) return []
    const [names = '', wanted = '', reason] = line.split('\t')
    if (!/^\w+(\|\w+)*$/.test(names) || !/^(y|n|\d+|has [a-z]+)$/.test(wanted) || reason === '')
      throw new RequirementError(`kspp.tsv line ${at + 1}: must be names, what is wanted and a reason or none: ${line.slice(0, 80)}`)
    if (seen.has(`${names} ${wanted}`)) throw new RequirementError(`kspp.tsv line ${at + 1}: ${names} is there twice`)
    seen.add(`${names} ${wanted}`)
    return [{ names: names.split('|'), wanted, reason }]
  })
}

/** What is required of x86-64. */
export const requirements: readonly Requirement[] = requirementsIn(readFileSync(join(import.meta.dir, 'kspp.tsv'), 'utf8'))

/** Looks at every requirement. */
export const judge = (options: Options, table: readonly Requirement[] = requirements): Finding[] =>
  table.map((requirement) => {
    const { names, wanted } = requirement
    const there = names.map((name) => options.get(name) ?? 'n')
    const found = there.find((value) => value !== 'n') ?? 'n'
    const met = wanted.startsWith('has ') ? found.replaceAll('"', '').split(',').includes(wanted.slice(4)) : found === wanted
    return { requirement, found, met }
  })

/** What is wrong with a kernel, a line each: requirements that are not met without a reason, and reasons that no requirement needs. */
export function complaints(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ requirement: { names, wanted, reason }, found, met }) => {
    if (!met && !reason) return [`CONFIG_${names[0]}: ${wanted} is wanted, it is ${found}, and kspp.tsv has no reason`]
    return met && reason ? [`CONFIG_${names[0]}: is as wanted, yet kspp.tsv has a reason why not: take it out`] : []
  })
}
