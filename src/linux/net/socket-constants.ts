/** Constants of sockets that several kinds of them share (socket(7); include/uapi/asm-generic/socket.h, include/linux/socket.h). */

export const SOCK_STREAM = 1
export const SOCK_DGRAM = 2
export const SOCK_RAW = 3
export const SOCK_CLOEXEC = 0o2000000
export const SOCK_NONBLOCK = 0o4000
export const SOL_SOCKET = 1
export const SO_RCVBUF = 8
export const MSG_TRUNC = 0x20
export const MSG_DONTWAIT = 0x40
