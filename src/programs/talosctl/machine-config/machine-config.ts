import type { Cluster } from '../cluster.ts'
import { UsageError } from '../failure.ts'

/** Names by which users ask for the machine configuration. */
const names = [
  'machineconfig',
  'machineconfigs',
  'mc',
  'mcs',
  'machineconfigs.config',
  'machineconfigs.config.talos',
  'machineconfigs.config.talos.dev',
]

/** Refuses every type but the machine configuration, the only one that can be changed. */
export function checkChangeable(type: string): void {
  if (!names.includes(type.toLowerCase())) throw new UsageError(`resource "${type}" cannot be changed: only "machineconfig" can`)
}

/** The configuration a node has, as YAML. */
export async function machineConfig(cluster: Cluster, node: string | undefined, id = 'v1alpha1'): Promise<string> {
  const request = { namespace: 'config', type: 'MachineConfigs.config.talos.dev', id }
  const { resource } = await cluster.unary('cosi.resource.State/Get', request, { node })
  const yaml = resource?.spec?.yamlSpec ?? ''
  const value: unknown = Bun.YAML.parse(yaml)
  return typeof value === 'string' ? value : yaml
}
