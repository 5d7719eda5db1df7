/** The section of docs/boot.md on kernel parameters. */
import type { KernelParameter } from '../../src/os/lifecycle/kernel-parameters/parameter.ts'
import { kernelParameters } from '../../src/os/lifecycle/kernel-parameters/table.ts'
import { cell, generated, table } from './text.ts'

const heading = '## Kernel parameters'

const introduction = [
  `${generated} Where a parameter is repeated the last one applies,`,
  'unless the table states another. A parameter that is refused, has a wrong value or is not known is named in the first lines of the',
  'console, after the version, with what to do instead; the machine starts without it. Values of those marked *secret* are not printed.',
  'An installation passes those marked *kept* on to the installed system. A container node has no kernel parameters: those of its host',
  'are not read.',
]

/** The page with its section as the declarations are now. */
export function withKernelParameters(page: string): string {
  const start = page.indexOf(`\n${heading}\n`) + 1
  if (start === 0) throw new Error(`docs/boot.md has no section "${heading}"`)
  const next = page.indexOf('\n## ', start)
  return `${page.slice(0, start)}${section()}${next < 0 ? '' : page.slice(next)}`
}

const section = (): string =>
  [
    heading,
    '',
    ...introduction,
    '',
    ...kernelParameters.flatMap(([subject, parameters]) => table([subject, 'value', 'effect'], parameters.map(row))),
  ].join('\n')

function row({ name, value, effect, repeated, refused, secret, kept }: KernelParameter): string[] {
  const marks = [repeated && (repeated === 'all' ? 'all apply' : 'the first applies'), secret && 'secret', kept && 'kept'].filter(Boolean)
  const text = refused === undefined ? effect : `**refused**: ${effect}`
  return [`\`${name}\``, cell(value), cell(marks.length === 0 ? text : `${text} (*${marks.join(', ')}*)`)]
}
