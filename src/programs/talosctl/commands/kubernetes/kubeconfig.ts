import { chmod, mkdir, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Command, Option } from 'commander'
import { formatKubeconfig, type Kubeconfig, mergeKubeconfig, parseKubeconfig } from '../../../../kube/kubeconfig.ts'
import { codeOf } from '../../../../wire/errno.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { type Io, remark } from '../../io.ts'
import { fetchKubeconfig } from '../../kubeconfig-fetch.ts'
import { readTextIfThere } from '../../read-text.ts'

interface KubeconfigOptions {
  force?: boolean
  forceContextName?: string
  merge: boolean
}

/** talosctl kubeconfig */
export const kubeconfig = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Get the admin kubeconfig and merge it into yours, write it to a file, or to standard output.')
    .argument('[path]', 'file to write, or folder to put "kubeconfig" in; "-" is standard output')
    .option('-f, --force', 'overwrite what has the same name')
    .option('--force-context-name <name>', 'call the context this')
    .addOption(new Option('-m, --merge').default(true).hideHelp())
    .option('--no-merge', 'write the file alone instead of merging it')
    .action((path: string | undefined, options: KubeconfigOptions) => runKubeconfig(io, cluster, path, options))

/** Fetches the kubeconfig of the cluster and writes it to the requested file. */
export async function runKubeconfig(io: Io, cluster: Cluster, path: string | undefined, options: KubeconfigOptions): Promise<void> {
  await cluster.single('kubeconfig')
  const text = await fetchKubeconfig(cluster)
  if (path === '-') {
    io.stdout.write(text)
    return
  }
  const target = await targetPath(io, path, options)
  const present = await readTextIfThere(target)
  if (!options.merge) {
    if (present !== undefined && !options.force) {
      throw new UsageError(`kubeconfig file "${target}" exists already: use --force to overwrite it, or another path`)
    }
    await writePrivate(target, text)
    return
  }
  const fetched = renamed(parseKubeconfig(text), options.forceContextName)
  if (present === undefined) {
    await writePrivate(target, formatKubeconfig(fetched))
    remark(io, `kubeconfig written to "${target}", current context is "${fetched.currentContext}"\n`)
    return
  }
  const overwrite = options.force === true || (await mayOverwrite(io, parseKubeconfig(present), fetched))
  const { config, renamed: names } = mergeKubeconfig(parseKubeconfig(present), fetched, { overwrite, activate: true })
  await writePrivate(target, formatKubeconfig(config))
  for (const { kind, from, to } of names) io.stderr.write(`renamed ${kind} "${from}" to "${to}": the name is taken, --force overwrites\n`)
  remark(io, `kubeconfig merged into "${target}", current context is "${config.currentContext}"\n`)
}

async function targetPath(io: Io, path: string | undefined, { merge }: KubeconfigOptions): Promise<string> {
  if (path === undefined) {
    if (!merge) return 'kubeconfig'
    const [first] = (io.env.KUBECONFIG ?? '').split(':').filter(Boolean)
    return first ?? join(io.env.HOME || homedir(), '.kube', 'config')
  }
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => path.endsWith('/'),
  )
  return isFolder ? join(path, 'kubeconfig') : path
}

async function writePrivate(path: string, text: string): Promise<void> {
  const partial = `${path}.${process.pid}.part`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(partial, text, { mode: 0o600 })
    await chmod(partial, 0o600)
    await rename(partial, path)
  } catch (error) {
    throw new UsageError(`write "${path}": ${codeOf(error)}`)
  }
}

function renamed(config: Kubeconfig, name: string | undefined): Kubeconfig {
  if (!name) return config
  const [context] = config.contexts.values()
  if (!context) return config
  return { ...config, contexts: new Map([[name, context]]), currentContext: name }
}

async function mayOverwrite(io: Io, present: Kubeconfig, fetched: Kubeconfig): Promise<boolean> {
  if (!io.interactive) return false
  const taken = mergeKubeconfig(present, fetched).renamed.find(({ kind }) => kind === 'context')?.from
  if (taken === undefined) return false
  const answer = await io.ask(`context "${taken}" is in the kubeconfig already: [r]ename the new one or [o]verwrite it? `)
  return /^o/i.test(answer)
}
