import { Command } from 'commander'
import { type Document, isMap, isSeq, parseAllDocuments, stringify, type YAMLMap, type YAMLSeq } from 'yaml'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { list } from '../../flags.ts'
import { type Io, remark } from '../../io.ts'
import { readText } from '../../read-text.ts'

const volume = 'talos-secrets'
const mountPath = '/var/run/secrets/talos.dev'
const largest = 64 << 20

/** Where each kind keeps the pod it makes. */
const podPaths: Record<string, readonly string[]> = {
  'v1/Pod': ['spec'],
  'apps/v1/Deployment': ['spec', 'template', 'spec'],
  'apps/v1/StatefulSet': ['spec', 'template', 'spec'],
  'apps/v1/DaemonSet': ['spec', 'template', 'spec'],
  'apps/v1/ReplicaSet': ['spec', 'template', 'spec'],
  'batch/v1/Job': ['spec', 'template', 'spec'],
  'batch/v1/CronJob': ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
}

/** What gives a pod its key. */
const accountKind = { apiVersion: 'talos.dev/v1alpha1', kind: 'ServiceAccount' }

interface InjectOptions {
  file: string
  roles: string[]
}

const examples = `
Examples:
  talosctl inject serviceaccount --roles os:reader -f deployment.yaml > with-access.yaml
  talosctl inject serviceaccount -f deployment.yaml | kubectl apply -f -
`

/** talosctl inject */
export const inject = (io: Io, _: Cluster) => {
  const command = new Command().description('Change Kubernetes manifests.')
  command
    .command('serviceaccount')
    .alias('tsa')
    .description('Give the pods of a manifest a key to the machine API: a service account, and its secret in every container.')
    .option('-f, --file <manifest>', 'the manifest; "-" is standard input', '')
    .option('-r, --roles <role>', 'roles of the service account, comma separated', list(), ['os:reader'])
    .addHelpText('after', examples)
    .action((options: InjectOptions) => runInjectServiceAccount(io, options))
  return command
}

/** Prints the manifest with what was added; comments and order stay. */
export async function runInjectServiceAccount(io: Io, { file, roles }: InjectOptions): Promise<void> {
  if (!file) throw new UsageError('name the manifest with --file; "-" is standard input')
  const text = file === '-' ? Buffer.from(await io.readStdin()).toString('utf8') : await readText(file)
  if (text.length > largest) throw new UsageError(`"${file}" has more than ${largest} bytes`)
  const parts: string[] = []
  /** Service accounts that were written: what was injected once is not added a second time. */
  const accounts = new Set<string>()
  for (const document of parseAllDocuments(text)) {
    const [error] = document.errors
    if (error) throw new UsageError(`"${file}": ${error.message.split('\n')[0]}`)
    if (document.toJS() === null) continue
    const present = accountOf(document)
    if (present !== undefined) {
      if (accounts.has(present)) continue
      accounts.add(present)
    }
    const account = addAccess(document, file)
    parts.push(document.toString({ lineWidth: 0 }))
    if (!account) continue
    const id = `${account.namespace ?? ''}/${account.name}`
    if (accounts.has(id)) continue
    accounts.add(id)
    parts.push(stringify(serviceAccount(account.name, account.namespace, roles)))
  }
  if (accounts.size === 0)
    remark(io, `"${file}" has nothing that makes pods, it stays as it is: they are made by ${Object.keys(podPaths).join(', ')}\n`)
  io.stdout.write(parts.map((part) => `${part.replace(/^---\n/, '').replace(/\n*$/, '\n')}---\n`).join(''))
}

/** Namespace and name of a service account, if the document is one. */
function accountOf(document: Document): string | undefined {
  if (document.get('apiVersion') !== accountKind.apiVersion || document.get('kind') !== accountKind.kind) return undefined
  return `${document.getIn(['metadata', 'namespace']) ?? ''}/${document.getIn(['metadata', 'name']) ?? ''}`
}

function serviceAccount(name: string, namespace: string | undefined, roles: readonly string[]): object {
  return { ...accountKind, metadata: { name, ...(namespace && { namespace }) }, spec: { roles } }
}

/** Puts volume and mounts into a document that makes pods; the service account it then needs. */
function addAccess(document: Document, file: string): { name: string; namespace?: string } | undefined {
  const kind = `${document.get('apiVersion')}/${document.get('kind')}`
  const path = Object.hasOwn(podPaths, kind) ? podPaths[kind] : undefined
  if (!path) return undefined
  const name = document.getIn(['metadata', 'name'])
  const pod = document.getIn(path)
  if (typeof name !== 'string' || !isMap(pod)) throw new UsageError(`"${file}": ${kind} without a name or without ${path.join('.')}`)
  const namespace = document.getIn(['metadata', 'namespace'])
  const account = `${name}-talos-secrets`
  put(document, pod, 'volumes', { name: volume, secret: { secretName: account } })
  for (const group of ['containers', 'initContainers']) {
    const containers = pod.get(group)
    if (!isSeq(containers)) continue
    for (const container of containers.items) if (isMap(container)) put(document, container, 'volumeMounts', { name: volume, mountPath })
  }
  return { name: account, ...(typeof namespace === 'string' && { namespace }) }
}

/** Adds an entry to a list of named ones, in place of one with the same name. */
function put(document: Document, owner: YAMLMap, key: string, entry: { name: string } & Record<string, unknown>): void {
  const known = owner.get(key)
  const items = isSeq(known) ? (known as YAMLSeq) : undefined
  if (!items) {
    owner.set(key, document.createNode([entry]))
    return
  }
  const at = items.items.findIndex((item) => isMap(item) && item.get('name') === entry.name)
  if (at < 0) items.add(document.createNode(entry))
  else items.set(at, document.createNode(entry))
}
