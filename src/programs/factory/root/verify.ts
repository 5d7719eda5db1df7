/** What must hold for every root file system, looked at before it is packed. */
import type { Tree } from './tree.ts'

/** The tree holds something it must not, or lacks something it needs. */
export class VerifyError extends Error {
  override name = 'VerifyError'
}

// A node runs nothing but its services: no shell, no interpreter, no core utilities, no way in but the API.
const shells = ['ash', 'bash', 'busybox', 'csh', 'dash', 'fish', 'ksh', 'mksh', 'rbash', 'sh', 'tcsh', 'toybox', 'zsh']
const interpreters = ['awk', 'gawk', 'lua', 'mawk', 'node', 'perl', 'php', 'python', 'python3', 'ruby', 'tclsh', 'xargs']
const access = [
  'agetty',
  'dropbear',
  'getty',
  'login',
  'nc',
  'ncat',
  'netcat',
  'scp',
  'sftp',
  'socat',
  'ssh',
  'sshd',
  'su',
  'sudo',
  'telnet',
  'telnetd',
]
const packaging = ['apk', 'apt', 'apt-get', 'dpkg', 'npm', 'pip', 'rpm']
const coreutils =
  'arch b2sum base32 base64 basename cat chgrp chmod chown chroot cksum comm coreutils cp csplit curl cut date dd df dir du echo ed env expand expr factor false find fmt fold grep groups gzip head hostid id install join less link ln logname ls md5sum mkdir mkfifo mknod mktemp more mv nice nl nohup nproc nsenter numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink realpath rm rmdir sed seq setpriv setsid sha1sum sha256sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail tar tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink unshare uptime users vdir vi vim wc wget who whoami yes'.split(
    ' ',
  )

const forbidden = new Set([...shells, ...interpreters, ...access, ...packaging, ...coreutils])

/** Folders whose files are run. */
const programFolders = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/libexec', '/opt']

/** Places that only exist once the node runs. */
const atRuntime = /^\/(run|proc|sys|dev|var|system)\//

/** Below these are the roots of containers, in which links lead. */
const otherRoots = ['/usr/share/ichor/layers/', '/usr/local/lib/containers/']

/** Complains about the first thing that is wrong with a tree. */
export function verifyTree(tree: Tree): void {
  const follow = tree.follower()
  for (const entry of tree.entries()) {
    const { path } = entry
    if (
      programFolders.some((folder) => path.startsWith(`${folder}/`)) &&
      entry.type !== 'dir' &&
      forbidden.has(path.slice(path.lastIndexOf('/') + 1))
    ) {
      throw new VerifyError(
        `"${path}" (${entry.part}) must not be in the root file system: it has no shell, interpreters, core utilities or remote access`,
      )
    }
    if (entry.mode & 0o6000) throw new VerifyError(`"${path}" (${entry.part}) would run with the rights of its owner`)
    if (entry.type === 'file' && entry.mode & 0o022)
      throw new VerifyError(`"${path}" (${entry.part}) could be written by others than its owner`)
    if (entry.type === 'symlink' && !otherRoots.some((folder) => path.startsWith(folder))) {
      const target = entry.target ?? ''
      const absolute = target.startsWith('/') ? target : `${path.slice(0, path.lastIndexOf('/'))}/${target}`
      const leads = new URL(`file://${absolute}`).pathname
      if (!atRuntime.test(`${leads}/`) && !follow(path)) throw new VerifyError(`link "${path}" (${entry.part}) leads nowhere: "${target}"`)
    }
  }
}
