/**
 * The code, its comments, messages and documents use the terms of the field. Each word below has a plain one in its place,
 * because it stood for several things at once or is unknown to a reader from outside. Identifiers are split at their
 * capitals, so `toldTwice` is found as well as "told".
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'

const root = join(import.meta.dir, '..')

/** Whole words or phrases, and what to write. */
const forbidden: readonly (readonly [pattern: string, instead: string])[] = [
  ['wish(es|ed|ing)?', 'desired, spec, requested'],
  ['told|tell(s|ing)?', 'report, notify, log, publish, describe'],
  ['said|says|saying', 'sent, received, states, specifies, requires'],
  ['asked|asks|asking', 'requested, queried, polled, calls'],
  ['doors?', 'transport, listener, server, deps'],
  ['desks?', 'the name of the service'],
  ['keepers?', 'reconciler, supervisor'],
  ['nouns?', 'resource types'],
  ['patien(ce|t|tly)|impatient(ly)?|persistently', 'timeout, retry'],
  ['anew', 'again, re-read, restart'],
  ['laps(e|es|ed|ing)', 'expire, revert on timeout'],
  ['foresee(s|n)?|foresaw', 'dry run, preview'],
  ['loud(er|est|ly)?', 'verbose, priority'],
  ['gent(le|ly|ler)', 'graceful'],
  ['who(m)?ever', 'the subject itself: a client, a caller'],
  ['surroundings', 'context'],
  ['(is|are|was|were|be|is not|are not) well|until well', 'healthy'],
  ['passed over|passes over|pass over|passing over', 'skipped, ignored'],
  ['all the same', 'anyway, still'],
  ['cards?', 'network interface, link'],
  ['chapters?', 'scenario'],
  ['put to rest', 'stopped, disarmed'],
  ['signs? of life', 'keepalive, response'],
  ['(is|are|was|were) to (be|stay)', 'must be, desired, requested'],
  ['of (ours|theirs|its own accord)', 'the owner itself'],
  ['for good', 'permanently'],
]

/** Names of types that say too little, as they are spelled in code. */
const forbiddenTypes =
  /(?<=(?:\b(?:type|interface|class|extends|new)|[<:|&,{(=]) ?)(?:Life|Surroundings|Ending|Taking|Parts|Doors?|Wish(?:es)?)\b/g

const files = [
  'src/**/*.{ts,txt,json}',
  'docs/**/*.{md,ts,json}',
  'bench/**/*.{md,ts,go}',
  'rootfs/**/*.{ts,md,go,c,h,sh,json}',
  'tests/**/*.{ts,go,md}',
  'README.md',
]
  .flatMap((pattern) => [...new Glob(pattern).scanSync(root)])
  .filter((path) => path !== 'tests/language.test.ts')
  .sort()

const anyForbidden = new RegExp(`\\b(?:${forbidden.map(([pattern]) => pattern).join('|')})\\b`, 'gi')

/** Wordings of other tools that are printed as those tools do. */
const foreign = /\bARP who has \S+, tell\b/g

const split = (line: string) => line.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').replaceAll('_', ' ')

function wordsOf(line: string, isCode: boolean): string[] {
  return [...split(line.replaceAll(foreign, '')).matchAll(anyForbidden), ...(isCode ? line.matchAll(forbiddenTypes) : [])].map(([word]) =>
    word.toLowerCase(),
  )
}

/** Every occurrence as `file:line word`; line 0 is the path itself. */
const occurrences = files.flatMap((path) => {
  const isCode = path.endsWith('.ts')
  const text = `${path.replaceAll(/[/-]/g, ' ')}\n${readFileSync(join(root, path), 'utf8')}`
  if (wordsOf(text, isCode).length === 0) return []
  const lines = text.split('\n')
  return lines.flatMap((line, number) => [...new Set(wordsOf(line, isCode))].map((word) => `${path}:${number} ${word}`))
})

function insteadOf(place: string): string {
  const word = place.slice(place.indexOf(' ') + 1)
  return forbidden.find(([pattern]) => new RegExp(`^(?:${pattern})$`, 'i').test(word))?.[1] ?? 'a name that states what it is'
}

test('the terms of the field are used', () => {
  expect(occurrences.map((place) => `${place} (write: ${insteadOf(place)})`)).toEqual([])
})

test('no text has the marks of a merge that was not finished', () => {
  const marks = /^(?:<{7} |>{7} |\|{7} )/m
  expect(files.filter((path) => marks.test(readFileSync(join(root, path), 'utf8')))).toEqual([])
})
