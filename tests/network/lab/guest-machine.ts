/** A small virtual machine with the kernel of the image (a part of its build), whose only program is a script of the tests. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { $ } from 'bun'
import { program } from './namespaces.ts'

const parts = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor/parts')
/** Debian's kernel, or with ICHOR_VM_KERNEL=hardened the one that was compiled: the name of the part, and the folder in it. */
const [partName, inside] =
  process.env.ICHOR_VM_KERNEL === 'hardened'
    ? [/^hardened-kernel-[0-9a-f]+$/, '']
    : [/^debian-linux-image-[\d.]+-\d+-(cloud-)?amd64-/, 'files']
const kernel = existsSync(parts)
  ? readdirSync(parts)
      .filter((name) => partName.test(name))
      .map((name) => join(parts, name, inside))
      .find((folder) => existsSync(join(folder, 'boot')))
  : undefined

/** What is missing on this host for such a machine, beside these programs. */
export function missingFor(...programs: string[]): string[] {
  const missing = ['qemu-system-x86_64', 'cpio', 'gcc', 'modinfo', ...programs].filter((name) => !program(name))
  return kernel ? missing : [...missing, 'the kernel among the parts of the image']
}

/** The guest's PID 1 needs these before its runtime can begin. */
const first = `#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755), mkdir("/tmp", 0777), mkdir("/run", 0755);
  mount("proc", "/proc", "proc", 0, 0), mount("sysfs", "/sys", "sysfs", 0, 0), mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
  char *argv[] = {"/guest", 0}, *env[] = {"HOME=/tmp", "PATH=/usr/sbin", 0};
  execve("/guest", argv, env);
  return 1;
}
`

/** Modules and what they depend on, in the order in which the kernel takes them. */
async function withDependencies(folder: string, modules: readonly string[]): Promise<string[]> {
  const files = new Map(
    (await $`find ${folder} -name ${'*.ko'}`.text())
      .trim()
      .split('\n')
      .map((path) => [basename(path, '.ko').replaceAll('-', '_'), path]),
  )
  const ordered: string[] = []
  const take = async (name: string): Promise<void> => {
    const path = files.get(name.replaceAll('-', '_'))
    if (!path || ordered.includes(path)) return // built into the kernel
    const depends = (await $`${program('modinfo')!} -F depends ${path}`.text()).trim()
    for (const needed of depends.split(',').filter((one) => one !== '')) await take(needed)
    ordered.push(path)
  }
  for (const name of modules) await take(name)
  return ordered
}

/** Copies a program of this host and the libraries it needs. */
async function copyProgram(root: string, name: string): Promise<void> {
  const path = program(name)!
  const libraries = [...(await $`ldd ${path}`.text()).matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library!)
  const into = (target: string, from: string) => {
    mkdirSync(dirname(join(root, target)), { recursive: true })
    cpSync(from, join(root, target), { dereference: true })
  }
  into(`usr/sbin/${name}`, path)
  for (const library of libraries)
    into(library.startsWith('/lib64/') ? `lib/${basename(library)}` : `lib/x86_64-linux-gnu/${basename(library)}`, library)
}

/** Runs a script (a file of this folder) as the machine's only program with these modules; gives its lines that begin with GUEST. */
export async function runGuest(
  script: string,
  modules: readonly string[],
  { programs = [] as string[], memory = 1024, deadline = 400_000 } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-guest-'))
  try {
    const root = join(folder, 'root')
    if (!kernel) throw new Error('there is no kernel among the parts of the image')
    for (const path of ['modules', 'lib/x86_64-linux-gnu']) mkdirSync(join(root, path), { recursive: true })
    symlinkSync('lib', join(root, 'lib64'))
    cpSync('/lib64/ld-linux-x86-64.so.2', join(root, 'lib/ld-linux-x86-64.so.2'), { dereference: true })
    for (const name of ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0'])
      cpSync(`/lib/x86_64-linux-gnu/${name}`, join(root, 'lib/x86_64-linux-gnu', name), { dereference: true })
    for (const name of programs) await copyProgram(root, name)
    for (const [index, path] of (await withDependencies(kernel, modules)).entries())
      cpSync(path, join(root, 'modules', `${String(index).padStart(2, '0')}-${basename(path)}`))
    writeFileSync(join(folder, 'first.c'), first)
    await $`gcc -static -Os -o ${join(root, 'init')} ${join(folder, 'first.c')}`.quiet()
    await $`${process.execPath} build --compile --minify ${join(import.meta.dir, script)} --outfile ${join(root, 'guest')}`.quiet()
    await $`cd ${root} && find . | cpio -o -H newc > ${join(folder, 'initramfs')}`.quiet()
    const image = readdirSync(join(kernel, 'boot')).find((name) => name.startsWith('vmlinuz'))!
    const machine = Bun.spawn(
      [
        ['qemu-system-x86_64', '-cpu', 'max', '-accel', 'tcg,thread=multi', '-smp', '2', '-m', String(memory)],
        ['-nographic', '-no-reboot', '-nic', 'none', '-kernel', join(kernel, 'boot', image), '-initrd', join(folder, 'initramfs')],
        ['-append', 'console=ttyS0 quiet panic=-1'],
      ].flat(),
      { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    )
    const timer = setTimeout(() => machine.kill('SIGKILL'), deadline)
    let console_ = ''
    const decoder = new TextDecoder()
    for await (const chunk of machine.stdout) {
      const text = decoder.decode(chunk, { stream: true })
      console_ += text
      if (process.env.SHOW) process.stdout.write(text)
    }
    await machine.exited
    clearTimeout(timer)
    if (!console_.includes('GUEST end')) console.error(`the machine's last words:\n${console_.slice(-4000)}`)
    return [...console_.matchAll(/GUEST (.*?)\r?\n/g)].map(([, line]) => line!)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
