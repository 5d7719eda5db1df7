import { dirname, join } from 'node:path'
import { formatIssue } from '../../../../document/config-error.ts'
import type { Comments } from '../../../../os/config/generate/explain.ts'
import { generate } from '../../../../os/config/generate/generate.ts'
import type { GenerateOptions } from '../../../../os/config/generate/machine.ts'
import { newSecrets, parseSecrets } from '../../../../os/config/generate/secrets.ts'
import { formatClientConfig, newClientConfig } from '../../../../os/config/generate/talosconfig.ts'
import { defaultInstallImage, defaultKubernetesVersion } from '../../../../os/config/generate/versions.ts'
import { UsageError } from '../../failure.ts'
import { type Io, remark } from '../../io.ts'
import { checkVersion } from '../../machine-config/version-contract.ts'
import { refuseExisting, writeNew } from '../../new-files.ts'
import { readPatches } from '../../patches.ts'
import { readText } from '../../read-text.ts'
import type { GenFlags } from './gen.ts'

/** The flags of `gen config` as commander leaves them. */
export interface ConfigOptions {
  output?: string
  outputDir?: string
  outputTypes?: string[]
  withSecrets?: string
  additionalSans?: string[]
  configPatch?: string[]
  configPatchControlPlane?: string[]
  configPatchWorker?: string[]
  dnsDomain: string
  installDisk: string
  installImage?: string
  kubernetesVersion?: string
  registryMirror?: string[]
  talosVersion?: string
  version: string
  withClusterDiscovery: boolean
  withDocs: boolean
  withExamples: boolean
  withKubespan?: boolean
}

const outputTypes = ['controlplane', 'worker', 'talosconfig']

/** Makes a cluster's configurations and writes them. */
export async function genConfig(io: Io, flags: GenFlags, clusterName: string, endpoint: string, options: ConfigOptions): Promise<void> {
  if (options.version !== 'v1alpha1') throw new UsageError(`unknown version "${options.version}" of the format: there is v1alpha1`)
  checkVersion(options.talosVersion)
  if (options.outputTypes?.length === 0) throw new UsageError(`--output-types names no output: there are ${outputTypes.join(', ')}`)
  const types = options.outputTypes ?? outputTypes
  const unknown = types.find((type) => !outputTypes.includes(type))
  if (unknown) throw new UsageError(`unknown output type "${unknown}": there are ${outputTypes.join(', ')}`)
  const paths = places(types, options.output ?? options.outputDir)
  const given: Omit<GenerateOptions, 'secrets'> = {
    clusterName,
    endpoint: checkEndpoint(endpoint),
    kubernetesVersion: checkKubernetes(options.kubernetesVersion),
    dnsDomain: options.dnsDomain,
    additionalSans: options.additionalSans ?? [],
    install: { disk: options.installDisk, image: options.installImage ?? defaultInstallImage },
    registryMirrors: mirrors(options.registryMirror ?? []),
    discovery: options.withClusterDiscovery,
    kubespan: options.withKubespan === true,
  }
  const patches = {
    all: await readPatches(options.configPatch ?? []),
    controlPlane: await readPatches(options.configPatchControlPlane ?? []),
    worker: await readPatches(options.configPatchWorker ?? []),
  }
  const outputs = paths.map(({ path }) => path)
  if (outputs[0] !== '-') await refuseExisting(outputs, flags.force)
  if (!options.withSecrets) remark(io, 'generating PKI and tokens\n')
  const secrets = options.withSecrets ? parseSecrets(await readText(options.withSecrets, 'secrets')) : await newSecrets({ now: io.now() })
  const input: GenerateOptions = { ...given, secrets }
  const comments: Comments = { docs: options.withDocs, examples: options.withExamples }
  const files = paths.map(({ type, path }) => {
    if (type === 'talosconfig')
      return { path, content: formatClientConfig(newClientConfig(secrets.certs.os, { clusterName, now: io.now() })) }
    const config = generate(type as 'controlplane' | 'worker', input, patches, comments)
    const { errors, warnings } = config.validate('cloud')
    for (const issue of [...errors, ...warnings]) io.stderr.write(`WARNING: ${type}: ${formatIssue(issue)}\n`)
    return { path, content: config.toString() }
  })
  const [first] = files
  if (first?.path === '-') {
    io.stdout.write(first.content)
    return
  }
  await writeNew(files, flags.force)
  for (const { path } of files) io.stderr.write(`Created ${path}\n`)
}

function places(types: readonly string[], output: string | undefined): { type: string; path: string }[] {
  const files = types.map((type) => ({ type, path: type === 'talosconfig' ? type : `${type}.yaml` }))
  if (output === undefined) return files
  if (types.length === 1 && (output === '-' || (!output.endsWith('/') && (/\.\w+$/.test(output) || types[0] === 'talosconfig'))))
    return files.map(({ type }) => ({ type, path: output }))
  if (output === '-') throw new UsageError('standard output takes one document: choose one with --output-types')
  if (/\.ya?ml$/.test(output))
    throw new UsageError(`"${output}" is one file for ${types.length} outputs: give a folder, such as "${dirname(output)}"`)
  return files.map(({ type, path }) => ({ type, path: join(output, path) }))
}

function checkEndpoint(endpoint: string): string {
  if (!endpoint.includes('://'))
    throw new UsageError(`"${endpoint}" is not a URL: did you mean "https://${endpoint}${/:\d+$/.test(endpoint) ? '' : ':6443'}"?`)
  if (!URL.canParse(endpoint) || new URL(endpoint).protocol !== 'https:')
    throw new UsageError(`"${endpoint}" is not an endpoint: use a URL like "https://10.0.0.1:6443"`)
  return endpoint
}

function checkKubernetes(version = defaultKubernetesVersion): string {
  if (!/^v?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    throw new UsageError(`"${version}" is not a version of Kubernetes: use one like "${defaultKubernetesVersion}"`)
  return version.replace(/^v/, '')
}

function mirrors(given: readonly string[]): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (const each of given) {
    const [registry = '', ...rest] = each.split('=')
    const url = rest.join('=')
    if (!registry || !URL.canParse(url))
      throw new UsageError(`--registry-mirror "${each}": want "registry=url", like "docker.io=http://10.0.0.1:5000"`)
    found[registry] = [...(found[registry] ?? []), url]
  }
  return found
}
