import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { StaticPod } from '../resources/static-pod.ts'
import { StaticPodServerStatus } from '../resources/static-pod-server-status.ts'

/** Serves the list of static pods to the kubelet, on a port of loopback the kernel chooses. */
export function serveStaticPods() {
  let list = podList([])
  let server: ReturnType<typeof Bun.serve> | undefined
  return defineController({
    name: 'k8s.StaticPodServerController',
    inputs: { pods: weak(StaticPod) },
    outputs: { status: exclusive(StaticPodServerStatus) },
    start({ signal }) {
      server = Bun.serve({
        hostname: '127.0.0.1',
        port: 0,
        fetch: (request) =>
          request.method === 'GET' && new URL(request.url).pathname === '/'
            ? new Response(list, { headers: { 'content-type': 'application/json' } })
            : new Response('not found\n', { status: 404 }),
      })
      signal.addEventListener('abort', () => void server?.stop(true))
    },
    reconcile({ pods, status }) {
      list = podList(pods.list().map(({ spec }) => spec))
      if (server) status.put('static-pod-server-status', { url: `http://127.0.0.1:${server.port}` })
    },
  })
}

function podList(items: unknown[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items })
}
