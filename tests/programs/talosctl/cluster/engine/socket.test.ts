import { expect, test } from 'bun:test'
import { engineSocket } from '../../../../../src/programs/talosctl/cluster/engine/socket.ts'

const paths = (present: string[], allowed = present) => ({
  exists: (path: string) => present.includes(path),
  mayConnect: (path: string) => allowed.includes(path),
})
const docker = '/var/run/docker.sock'
const podman = '/run/podman/podman.sock'
const own = '/run/user/7/podman/podman.sock'

test.each([
  [{}, paths([docker, podman]), docker],
  [{}, paths([podman]), podman],
  [{ XDG_RUNTIME_DIR: '/run/user/7' }, paths([own]), own],
  [{ XDG_RUNTIME_DIR: '/run/user/7' }, paths([docker, own], [own]), own],
  [{ HOME: '/home/me' }, paths(['/home/me/.docker/run/docker.sock']), '/home/me/.docker/run/docker.sock'],
  [{ DOCKER_HOST: 'unix:///srv/engine.sock' }, paths([docker, '/srv/engine.sock']), '/srv/engine.sock'],
])('%j finds a socket', (env, present, socket) => {
  expect(engineSocket(env, present)).toBe(socket)
})

test.each([
  [{}, paths([]), /^no container engine was found at \/var\/run\/docker\.sock, .*: start Docker, or "podman system service/],
  [{}, paths([docker], []), '"/var/run/docker.sock" is not accessible to this user: run the same command with sudo'],
  [{ DOCKER_HOST: 'tcp://10.0.0.1:2375' }, paths([docker]), 'DOCKER_HOST "tcp://10.0.0.1:2375": nodes are made by an engine on this host'],
  [{ DOCKER_HOST: 'ssh://host' }, paths([docker]), 'DOCKER_HOST "ssh://host": nodes are made by an engine on this host'],
  [{ DOCKER_HOST: '/run/docker.sock' }, paths([docker]), 'DOCKER_HOST "/run/docker.sock": write the path of a socket'],
  [{ DOCKER_HOST: 'unix:///gone' }, paths([docker]), 'there is no socket "/gone"'],
])('%j is refused in one line', (env, present, line) => {
  expect(() => engineSocket(env, present)).toThrow(line)
})
