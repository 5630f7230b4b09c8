// The kernel structures of the network we read, and the ICMP echo inside a packet.
//
// Where the network header lies depends on the way: on receive, before the stack proper (netif_rx, napi_gro_receive,
// netif_receive_skb), the driver has taken the link header off and `data` points at the network header, while
// `network_header` is not set yet. On transmit it is the other way round: `data` points at the link header.
#pragma once
#include "bpf.h"

struct ns_common {
	u32 inum; // the inode number of /proc/PID/ns/net
} CORE;

struct net {
	struct ns_common ns;
} CORE;

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	possible_net_t nd_net;
} CORE;

struct sk_buff {
	struct net_device *dev;
	u16 protocol; // network order
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
} CORE;

enum { ETH_IP = 0x0008, ETH_IPV6 = 0xdd86 }; // network order, as a little-endian CPU reads it
enum { PROTO_ICMP = 1, PROTO_ICMPV6 = 58 };
enum { ECHO_NONE, ECHO_REQUEST, ECHO_REPLY };

// One echo, the same for request and reply. Its twin is in mod.rs. Numbers of the packet stay in network order.
struct echo_key {
	u32 side;
	u16 id, sequence;
	u32 requester[4], responder[4]; // IPv4: the first word, the rest 0
};

struct echo_header {
	u8 type, code;
	u16 checksum, id, sequence;
};

INLINE u32 netns_of(struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;
	struct net *net = dev ? READ(dev, nd_net.net) : 0;
	return net ? READ(net, ns.inum) : 0;
}

// Is the packet an ICMP or ICMPv6 echo? Fills the key but for its side. No extension headers, no fragments.
INLINE u32 echo_of(struct sk_buff *skb, bool is_received, struct echo_key *key)
{
	u16 protocol = skb->protocol;
	unsigned char *at;
	struct echo_header echo;
	u32 ip[10];
	u32 is_v6, i, request, reply, length;
	if (protocol != ETH_IP && protocol != ETH_IPV6)
		return ECHO_NONE;
	at = is_received ? skb->data : skb->head + skb->network_header;
	is_v6 = protocol == ETH_IPV6;
	// The kernel leaves headroom and tail room, so 40 bytes are always readable.
	if (probe_read_kernel(ip, sizeof(ip), at))
		return ECHO_NONE;
	if (is_v6) {
		if (((u8 *)ip)[6] != PROTO_ICMPV6)
			return ECHO_NONE;
		length = 40;
		request = 128;
		reply = 129;
	} else {
		if (((u8 *)ip)[9] != PROTO_ICMP)
			return ECHO_NONE;
		if (ip[1] & 0xff1f0000) // the fragment offset, as a little-endian CPU reads it
			return ECHO_NONE;
		length = (((u8 *)ip)[0] & 0xf) * 4;
		request = 8;
		reply = 0;
	}
	if (probe_read_kernel(&echo, sizeof(echo), at + length))
		return ECHO_NONE;
	if (echo.code || (echo.type != request && echo.type != reply))
		return ECHO_NONE;
	key->id = echo.id;
	key->sequence = echo.sequence;
	for (i = 0; i < 4; i++) {
		u32 from = is_v6 ? ip[2 + i] : i == 0 ? ip[3] : 0;
		u32 to = is_v6 ? ip[6 + i] : i == 0 ? ip[4] : 0;
		key->requester[i] = echo.type == request ? from : to;
		key->responder[i] = echo.type == request ? to : from;
	}
	return echo.type == request ? ECHO_REQUEST : ECHO_REPLY;
}
