import { nearest } from '../../../document/nearest.ts'
import type { Parameter } from '../../../wire/command-line.ts'
import { parameterValues } from '../../../wire/command-line.ts'
import type { KernelParameter } from './parameter.ts'
import { kernelParameters } from './table.ts'

const table = new Map(kernelParameters.flatMap(([, parameters]) => parameters.map((each) => [each.name, each] as const)))

/** Names that only this system reads: a wrong one is a mistake, not the kernel's or a module's own. */
const ours = /^(talos|siderolink|em|ichor)\./

/** Characters of a value that are shown. */
const shownLength = 80

/** One line for each parameter that does not do what was requested: it is unknown, refused, or has a wrong value. */
export function complaintsAbout(parameters: readonly Parameter[]): string[] {
  const names = new Set(parameters.map(({ name }) => name))
  return [...names].flatMap((name) => {
    const known = table.get(name)
    if (!known) return ours.test(name) ? [unknown(name)] : []
    const values = [...new Set(parameterValues(parameters, name))]
    const wrong = values.flatMap((value) => {
      const problem = refusal(known, value) ?? known.check?.(value, parameters)
      return problem === undefined ? [] : [`${shown(known, value)}: ${problem}`]
    })
    return values.length > 1 && (known.repeated === 'first' || (ours.test(name) && known.repeated !== 'all'))
      ? [...wrong, `${shown(known)}: it is given ${values.length} times, the ${known.repeated ?? 'last'} applies`]
      : wrong
  })
}

function unknown(whole: string): string {
  const name = whole.slice(0, shownLength)
  const guess = nearest(name, table.keys())
  return `kernel parameter "${name}": it is not known${guess ? `, did you mean "${guess}"?` : ', it has no effect'}`
}

const refusal = ({ refused, effect }: KernelParameter, value: string): string | undefined =>
  refused === 'always' || refused === value ? `it has no effect, ${effect.replaceAll('`', '"')}` : undefined

function shown({ name, secret }: KernelParameter, value = ''): string {
  return `kernel parameter "${name}${secret || value === '' ? '' : `=${value.slice(0, shownLength)}`}"`
}
