/** A cluster's configurations, ready to be applied. */
import { ConfigError } from '../../../document/config-error.ts'
import { ConfigContainer } from '../container.ts'
import { V1Alpha1 } from '../documents/v1alpha1.ts'
import { type Comments, explain } from './explain.ts'
import { controlPlaneDocument, type GenerateOptions, workerDocument } from './machine.ts'
import { toYaml } from './yaml.ts'

/** Patches of the generated configuration: strategic merges or JSON patches. */
export interface Patches {
  all?: string[]
  controlPlane?: string[]
  worker?: string[]
}

const hostname = { apiVersion: 'v1alpha1', kind: 'HostnameConfig', auto: 'stable' }
const kubespan = { apiVersion: 'v1alpha1', kind: 'KubeSpanConfig', enabled: true }

/** Generates the configuration of one machine type, patched and parsed again; with comments on request. Throws ConfigError. */
export function generate(
  type: 'controlplane' | 'worker',
  options: GenerateOptions,
  patches: Patches = {},
  comments: Comments = {},
): ConfigContainer {
  if (!URL.canParse(options.endpoint) || !/^https:\/\/[^/]/.test(options.endpoint)) {
    throw new ConfigError([{ message: `${JSON.stringify(options.endpoint)} is not an endpoint: use a URL like "https://10.0.0.1:6443"` }])
  }
  const legacy = type === 'controlplane' ? controlPlaneDocument(options) : workerDocument(options)
  const others = [hostname, ...(options.kubespan ? [kubespan] : [])]
  const text = [toYaml(legacy, explain(V1Alpha1.schema, comments)), ...others.map((document) => toYaml(document))].join('---\n')
  const own = type === 'controlplane' ? patches.controlPlane : patches.worker
  return ConfigContainer.parse(text).patch(...(patches.all ?? []), ...(own ?? []))
}
