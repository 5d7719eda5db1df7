/**
 * What the kubelet shares with the machine and the pods' containers: everything that can be written, so that the kubelet judges the
 * type of a `hostPath` and resolves its `subPath` where the container will see it.
 */
export const sharedPaths: readonly string[] = ['/etc/kubernetes', '/opt', '/run', '/tmp', '/usr/libexec/kubernetes', '/var']
