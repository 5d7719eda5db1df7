/** The SELinux policy, compiled from the texts in rootfs/selinux. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Tree } from '../../src/programs/factory/root/tree.ts'
import { cached, hashOf } from './cache.ts'
import { run } from './run.ts'

/** Where stage 0 finds it in the root file system. */
const policyPath = '/usr/share/ichor/selinux.policy'

/** What it may take: stage 0 has room for twice of it. */
const policyLimit = 200_000

const folder = join(import.meta.dir, '../selinux')

/** The version of the binary form: the highest of the kernels of images. */
const version = '33'

/** Compiles the policy; the compiler refuses one that breaks a rule of its own (`neverallow`). Gives the file. */
export async function buildPolicy(): Promise<string> {
  const names = readdirSync(folder).sort()
  const content = Object.fromEntries(names.map((name) => [name, hashOf(readFileSync(join(folder, name)))]))
  const compiler = await run(['dpkg-query', '--show', 'secilc', 'libsepol2'])
  const part = await cached('selinux', { content, version, compiler }, async (into) => {
    const output = ['--output', join(into, 'policy'), '--filecontext', '/dev/null']
    await run(['secilc', '--policyvers', version, '--optimize', ...output, ...names.map((name) => join(folder, name))])
  })
  return join(part.folder, 'policy')
}

/** Puts the policy into the tree. */
export async function addPolicy(tree: Tree): Promise<void> {
  const bytes = readFileSync(await buildPolicy())
  if (bytes.length > policyLimit) throw new Error(`the SELinux policy has ${bytes.length} bytes, more than ${policyLimit}`)
  tree.text('selinux', policyPath, bytes)
}
