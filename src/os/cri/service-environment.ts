import type { StoreView } from '../../supervise/definition.ts'
import { Environment } from '../runtime/resources/environment.ts'

/** The operator's variables for services, as `NAME=value`. */
export function operatorEnvironment(store: StoreView): string[] {
  return store.get(Environment, 'machined')?.spec.variables ?? []
}

/** The environment of a program of the image: its PATH, and the operator's variables. */
export function programEnvironment(store: StoreView): Record<string, string> {
  const given = operatorEnvironment(store).map((variable): [string, string] => {
    const at = variable.indexOf('=')
    return [variable.slice(0, at), variable.slice(at + 1)]
  })
  return { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...Object.fromEntries(given) }
}
