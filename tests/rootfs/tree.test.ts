import { expect, test } from 'bun:test'
import { Tree, TreeError } from '../../src/programs/factory/root/tree.ts'
import { verifyTree } from '../../src/programs/factory/root/verify.ts'

function small(): Tree {
  const tree = new Tree()
  tree.link('base', '/bin', 'usr/bin')
  tree.text('kube', '/usr/bin/kube', 'program', 0o755)
  tree.link('kube', '/usr/bin/kubelet', 'kube')
  return tree
}

test('parents are implied and everything is in the order of its path', () => {
  expect(
    small()
      .entries()
      .map(({ path, type }) => `${type} ${path}`),
  ).toEqual(['symlink /bin', 'dir /usr', 'dir /usr/bin', 'file /usr/bin/kube', 'symlink /usr/bin/kubelet'])
})

test('links are followed, also in the middle of a path', () => {
  const tree = small()
  expect(tree.follower()('/bin/kubelet')?.path).toBe('/usr/bin/kube')
  tree.link('base', '/a', 'b')
  tree.link('base', '/b', 'a')
  expect(tree.follower()('/a')).toBeUndefined()
})

test('two parts cannot want one path', () => {
  expect(() => small().text('runc', '/usr/bin/kube', '')).toThrow(new TreeError('path "/usr/bin/kube" is wanted by kube and by runc'))
})

test('paths are absolute and plain', () => {
  for (const path of ['usr', '/', '/usr/', '/usr//bin', '/usr/../bin', '/usr/./bin', ''])
    expect(() => new Tree().dir('base', path)).toThrow(TreeError)
})

test('nothing lies below a file', () => {
  const tree = small()
  tree.text('base', '/usr/bin/kube/inside', '')
  expect(() => tree.entries()).toThrow('lies below "/usr/bin/kube", which is no directory')
})

test('shells, core utilities, remote access, set-user-id files and dead links are refused', () => {
  const refused = (change: (tree: Tree) => void) => {
    const tree = small()
    change(tree)
    return expect(() => verifyTree(tree))
  }
  expect(() => verifyTree(small())).not.toThrow()
  for (const name of ['sh', 'bash', 'busybox', 'ls', 'cat', 'sshd', 'python3']) {
    refused((tree) => tree.text('x', `/usr/bin/${name}`, '', 0o755)).toThrow(`"/usr/bin/${name}" (x) must not be in the root file system`)
    refused((tree) => tree.link('x', `/usr/sbin/${name}`, '../bin/kube')).toThrow('must not be')
  }
  refused((tree) => tree.text('x', '/usr/bin/mount', '', 0o4755)).toThrow('rights of its owner')
  refused((tree) => tree.text('x', '/etc/passwd', '', 0o666)).toThrow('written by others')
  refused((tree) => tree.link('x', '/usr/bin/gone', 'nothing')).toThrow('link "/usr/bin/gone" (x) leads nowhere: "nothing"')
  refused((tree) => tree.link('x', '/var/run', '../run')).not.toThrow()
})
