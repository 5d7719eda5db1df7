/** Parses each configuration once for all controllers. */
import type { Resource } from '../../cosi/resource.ts'
import { ConfigContainer } from './container.ts'

/** Reads a configuration. Throws ConfigError with everything that is wrong. */
export const parseConfig = (input: string | Uint8Array): ConfigContainer => ConfigContainer.parse(input)

const parsed = new WeakMap<Resource<string>, ConfigContainer>()

/** The configuration that a MachineConfig resource holds; nothing when there is no resource. */
export function configOf(resource: Resource<string>): ConfigContainer
export function configOf(resource: Resource<string> | undefined): ConfigContainer | undefined
export function configOf(resource: Resource<string> | undefined): ConfigContainer | undefined {
  if (!resource) return undefined
  let config = parsed.get(resource)
  if (!config) {
    config = parseConfig(resource.spec)
    parsed.set(resource, config)
  }
  return config
}
