/** Links that this machine's kernel may not have, in a virtual machine with Debian's kernel (a part of the image's build). */
import { expect, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { $ } from 'bun'

const modules = ['8021q', 'bonding', 'bridge', 'dummy', 'veth', 'vrf', 'wireguard']
const parts = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor/parts')
const part = existsSync(parts) ? readdirSync(parts).find((name) => /^debian-linux-image-[\d.]+-\d+-cloud-amd64-/.test(name)) : undefined
const needs = ['qemu-system-x86_64', 'cpio', 'gcc', 'modinfo'].filter(
  (program) => !Bun.which(program) && !existsSync(`/usr/sbin/${program}`),
)
if (!part) needs.push("Debian's kernel among the parts of the image")
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')}`)

/** Modules and what they depend on, in the order in which the kernel takes them. */
async function withDependencies(folder: string): Promise<string[]> {
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
    const depends = (await $`modinfo -F depends ${path}`.env({ ...process.env, PATH: `${process.env.PATH}:/usr/sbin` }).text()).trim()
    for (const needed of depends.split(',').filter((one) => one !== '')) await take(needed)
    ordered.push(path)
  }
  for (const name of modules) await take(name)
  return ordered
}

/** The guest's PID 1 needs these before its runtime can begin. */
const first = `#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755), mkdir("/tmp", 0777), mkdir("/run", 0755);
  mount("proc", "/proc", "proc", 0, 0), mount("sysfs", "/sys", "sysfs", 0, 0), mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
  char *argv[] = {"/guest", 0}, *env[] = {"HOME=/tmp", "PATH=/", 0};
  execve("/guest", argv, env);
  return 1;
}
`

test.skipIf(needs.length > 0)(
  'bonds, VLANs, VRFs, dummies, WireGuard and VLAN filtering on a kernel that has them',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ichor-links-vm-'))
    try {
      const root = join(folder, 'root')
      const kernel = join(parts, part!, 'files')
      for (const path of ['modules', 'lib/x86_64-linux-gnu']) mkdirSync(join(root, path), { recursive: true })
      symlinkSync('lib', join(root, 'lib64'))
      cpSync('/lib64/ld-linux-x86-64.so.2', join(root, 'lib/ld-linux-x86-64.so.2'), { dereference: true })
      for (const name of ['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0'])
        cpSync(`/lib/x86_64-linux-gnu/${name}`, join(root, 'lib/x86_64-linux-gnu', name), { dereference: true })
      for (const [index, path] of (await withDependencies(kernel)).entries())
        cpSync(path, join(root, 'modules', `${String(index).padStart(2, '0')}-${basename(path)}`))
      writeFileSync(join(folder, 'first.c'), first)
      await $`gcc -static -Os -o ${join(root, 'init')} ${join(folder, 'first.c')}`.quiet()
      await $`${process.execPath} build --compile --minify ${join(import.meta.dir, 'guest.ts')} --outfile ${join(root, 'guest')}`.quiet()
      await $`cd ${root} && find . | cpio -o -H newc > ${join(folder, 'initramfs')}`.quiet()
      const image = readdirSync(join(kernel, 'boot')).find((name) => name.startsWith('vmlinuz'))!
      const machine = Bun.spawn(
        [
          'qemu-system-x86_64',
          '-cpu',
          'max',
          '-accel',
          'tcg,thread=multi',
          '-smp',
          '2',
          '-m',
          '1024',
          '-nographic',
          '-no-reboot',
          '-nic',
          'none',
        ].concat(['-kernel', join(kernel, 'boot', image), '-initrd', join(folder, 'initramfs'), '-append', 'console=ttyS0 quiet panic=-1']),
        { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
      )
      const timer = setTimeout(() => machine.kill('SIGKILL'), 400_000)
      const console_ = await new Response(machine.stdout).text()
      await machine.exited
      clearTimeout(timer)
      const said = [...console_.matchAll(/GUEST (.*?)\r?\n/g)].map(([, line]) => line!)
      if (process.env.SHOW) console.log(console_)
      expect(said.filter((line) => line.startsWith('failed'))).toEqual([])
      expect(said.at(-1)).toBe('end')
      expect(said.filter((line) => line.startsWith('ok')).length).toBe(14)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  500_000,
)
