/** How a service of an extension runs: a container of the system's containerd, with nearly every right, as it is part of the image. */
import { background } from '../../../cosi/background.ts'
import type { RunContext, Runner, ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import { pause } from '../../../timing/pause.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Machine } from '../../area.ts'
import { mountOverlay } from '../../block/public.ts'
import { bindMount, operatorEnvironment, serviceContainer, systemDaemon } from '../../cri/public.ts'
import { networkConditions, timeConditions } from '../../network/public.ts'
import { ExtensionServiceConfig, ExtensionServiceConfigStatus } from '../resources/extension-service-config.ts'
import { configuredFile } from './configured-files.ts'
import { extensionServiceId } from './load.ts'
import { type ExtensionService, parseEnvironmentFile } from './service-spec.ts'
import type { ServiceStarts } from './starts.ts'

/** Milliseconds between two looks for a file that a service waits for. */
const lookPause = 500
/** Bytes of an environment file. */
const environmentLimit = 64 << 10

/** A service may neither restart the machine, which is init's part, nor load code into its kernel. */
const withheld = new Set<string>(['sys_boot', 'sys_module'])

const capabilitiesOf = ({ capabilities }: Machine['kernel']): string[] =>
  capabilities
    .boundingSet()
    .filter((name) => !withheld.has(name))
    .map((name) => `CAP_${name.toUpperCase()}`)

/** The service of a specification. */
export const extensionService = (machine: Machine, service: ExtensionService, starts: ServiceStarts): ServiceDefinition => {
  const { name, depends, restart } = service
  return {
    id: extensionServiceId(name),
    dependsOn: ['containerd', ...depends.services],
    wait: (store) => conditions(store, service),
    async prepare(context) {
      await filesExist(machine, service, context)
      mountRoot(machine, service)
      for (const { source, type } of service.mounts) if (source?.startsWith('/') && type === 'bind') makeFolder(machine, source)
      starts.begin(name, context.store.get(ExtensionServiceConfigStatus, name)?.spec.specVersion ?? '')
    },
    runner: service.logToConsole ? onConsole(machine, inContainer(machine, service)) : inContainer(machine, service),
    restart,
    oom: -600,
    cgroup: `/system/extensions/${name}`,
    operator: ['start', 'stop', 'restart'],
  }
}

function conditions(store: StoreView, { name, depends }: ExtensionService): string[] {
  const configured = !depends.configuration || store.get(ExtensionServiceConfigStatus, name)
  return [
    ...(depends.time ? timeConditions(store) : []),
    ...(depends.network.length > 0 ? networkConditions(store, depends.network) : []),
    ...(configured ? [] : [`extension service config "${name}"`]),
  ]
}

/** Waits for the files that a service cannot do without, until it is stopped. */
async function filesExist(
  { kernel }: Machine,
  { depends, environmentFile }: ExtensionService,
  { signal, note }: RunContext,
): Promise<void> {
  for (const path of [...depends.paths, ...(environmentFile ? [environmentFile] : [])]) {
    if (!kernel.files.exists(path)) note(`Waiting for "${path}"`)
    while (!kernel.files.exists(path) && !signal.aborted) await pause(lookPause, signal)
  }
  signal.throwIfAborted()
}

const rootFolder = (name: string): string => `/usr/local/lib/containers/${name}`

/**
 * The root is an overlay over the folder of the image, in which the mounts of the container get their places. What a service writes
 * there, where it may, is kept on EPHEMERAL.
 */
function mountRoot({ kernel }: Machine, { name, writeableRootfs }: ExtensionService): void {
  const target = rootFolder(name)
  if (!kernel.mount.mountAt(target)) mountOverlay(kernel, target, writeableRootfs ? '/var' : '')
}

function makeFolder({ kernel: { files } }: Machine, path: string): void {
  if (!files.exists(path)) files.mkdirAll(path, { mode: 0o700 })
}

const inContainer = (machine: Machine, service: ExtensionService): Runner =>
  serviceContainer(machine, systemDaemon, { folder: rootFolder(service.name) }, ({ store }) => ({
    args: [service.entrypoint, ...service.args],
    env: environmentOf(machine, service, store),
    capabilities: capabilitiesOf(machine.kernel),
    hostIpc: true,
    allDevices: true,
    readonlyRoot: !service.writeableRootfs,
    rootPropagation: service.rootPropagation,
    maskedPaths: service.maskedPaths,
    readonlyPaths: service.readonlyPaths,
    mounts: [
      ...(service.writeableSysfs
        ? [{ destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'rw'] }]
        : []),
      ...['/etc/hosts', '/etc/resolv.conf'].map((path) => bindMount(path)),
      ...service.mounts,
      ...configuredMounts(service.name, store),
    ],
  }))

const configuredMounts = (name: string, store: StoreView) =>
  (store.get(ExtensionServiceConfig, name)?.spec.files ?? []).map(({ mountPath }) =>
    bindMount(configuredFile(name, mountPath), { destination: mountPath }),
  )

/** The operator's variables, then those of the file, of the specification and of the configuration; the later one wins. */
function environmentOf({ kernel }: Machine, { name, environment, environmentFile }: ExtensionService, store: StoreView): string[] {
  const file = environmentFile ? parseEnvironmentFile(readOr(kernel, environmentFile)) : []
  const configured = store.get(ExtensionServiceConfig, name)?.spec.environment ?? []
  const variables = new Map<string, string>()
  for (const variable of [...operatorEnvironment(store), ...file, ...environment, ...configured])
    variables.set(variable.slice(0, variable.indexOf('=')), variable)
  return [...variables.values()]
}

function readOr({ files }: Machine['kernel'], path: string): string {
  try {
    return files.readText(path, { limit: environmentLimit })
  } catch (error) {
    if (failedWith(error, 'ENOENT')) return ''
    throw error
  }
}

/** Characters of an unfinished line that are held back. */
const lineLimit = 1024

/** Repeats on the console what a service writes. */
const onConsole =
  ({ log }: Machine, run: Runner): Runner =>
  async (context) => {
    const { output, definition } = context
    const from = output.end
    const started = await run(context)
    const ended = new AbortController()
    background(
      started.exit.then(() => ended.abort()),
      log,
    )
    background(async () => {
      let rest = ''
      for await (const bytes of output.read({ from, follow: true, signal: ended.signal })) {
        const lines = `${rest}${Buffer.from(bytes).toString()}`.split('\n')
        rest = lines.pop() ?? ''
        if (rest.length > lineLimit) {
          lines.push(rest)
          rest = ''
        }
        for (const line of lines) log.info(line, { service: definition.id })
      }
    }, log)
    return started
  }
